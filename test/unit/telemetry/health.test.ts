import { expect, onTestFinished, test, vi } from "vitest";
import { OwlError } from "../../../src/errors/owl-error.ts";
import { type Finding, Health, type HealthCheck } from "../../../src/telemetry/health.ts";

function check(name: string, isVital: boolean, look: () => Finding | Promise<Finding>): HealthCheck {
  return { name, isVital, look };
}

const fine = (): Finding => ({ status: "ok", message: "fine" });
const broken = (): Finding => ({ status: "down", message: "broken" });

test("everything fine is ok, and each check says how long it took", async () => {
  expect(await new Health([check("a", true, fine)]).report()).toEqual({
    status: "ok",
    checks: { a: { status: "ok", message: "fine", latency_ms: expect.any(Number) } },
  });
});

test.each([
  ["something vital is down", true, broken, "unavailable"],
  ["something vital still starts", true, (): Finding => ({ status: "starting", message: "soon" }), "unavailable"],
  ["something else is down", false, broken, "degraded"],
  ["something vital is low", true, (): Finding => ({ status: "degraded", message: "low" }), "degraded"],
] as const)("when %s", async (_what, isVital, look, status) => {
  const health = new Health([check("a", true, fine), check("b", isVital, look)]);
  expect((await health.report()).status).toBe(status);
});

test("a check that throws is down; its own words, with paths and addresses, are for operators alone", async () => {
  const refuse = (): Promise<Finding> => Promise.reject(new OwlError("store_unavailable", "no /srv/x at db.lan:5432"));
  const fail = (): Promise<Finding> => Promise.reject(Object.assign(new Error("no /srv/x"), { code: "ENOENT" }));
  const ours = { ...check("a", true, refuse), failure: "nothing can be read" };
  const found = (): Finding => ({ status: "degraded", message: "low", detail: "/srv/x is low" });
  const health = new Health([ours, check("b", true, fail), check("c", true, found)]);
  const latency_ms = expect.any(Number);
  expect(await health.report()).toEqual({
    status: "unavailable",
    checks: {
      a: { status: "down", message: "nothing can be read (store_unavailable)", latency_ms },
      b: { status: "down", message: "it could not be looked at (ENOENT)", latency_ms },
      c: { status: "degraded", message: "low", latency_ms },
    },
  });
  expect((await health.wholeReport()).checks).toMatchObject({
    a: { detail: "no /srv/x at db.lan:5432" },
    c: { detail: "/srv/x is low" },
  });
});

test("a check that never answers is down after a while", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const report = new Health([check("a", true, () => new Promise<Finding>(() => undefined))]).report();
  await vi.advanceTimersByTimeAsync(3000);
  expect((await report).checks["a"]).toMatchObject({ status: "down", message: expect.stringMatching(/3 seconds/) });
});

test("who asks again at once gets the same answer, and nothing is looked at twice", async () => {
  let looks = 0;
  const counted = (): Finding => {
    looks += 1;
    return fine();
  };
  const health = new Health([check("a", true, counted)]);
  await Promise.all([health.report(), health.report()]);
  await health.report();
  expect(looks).toBe(1);
});
