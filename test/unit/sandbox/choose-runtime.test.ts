import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { OwlError } from "../../../src/errors/owl-error.ts";
import type { Runtime } from "../../../src/sandbox/runtimes/runtime.ts";
import { Templates } from "../../../src/sandbox/templates.ts";
import { chooseRuntimes, type FailedRuntimes } from "../../../src/sandbox/choose-runtime.ts";
import type { OpenRuntime } from "../../../src/sandbox/open-runtime.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";

type Fate = "works" | "leaks" | "hangs" | OwlError;

/** Which were opened and closed, and runtimes that do as they are told. */
function lab(
  fates: Readonly<Record<string, Fate>>,
  isThere: (template: string | undefined) => boolean = () => true,
): { readonly events: string[]; readonly open: OpenRuntime } {
  const events: string[] = [];
  const open: OpenRuntime = async ({ name, isAsked }) => {
    events.push(`open ${name}${isAsked ? "" : " in passing"}`);
    const fate = fates[name];
    if (fate instanceof OwlError) throw fate;
    const check = {
      name: "isolation",
      severity: "isolation",
      detail: `${name} leaks`,
      holds: fate === "works",
    } as const;
    const runtime: Runtime = {
      name,
      probe: async (signal, template) => {
        if (name === "docker" && !isThere(template)) throw missing(template);
        if (fate === "hangs") {
          events.push(`probe ${name}`);
          await once(signal, "abort");
          signal.throwIfAborted();
        }
        return { runtime: name, checks: [check] };
      },
      start: async () => await Promise.reject(new Error(`started by ${name}`)),
      discard: async () => await Promise.resolve(true),
      reap: async () => await Promise.resolve({ removed: [] }),
      close: async () => await Promise.resolve(void events.push(`close ${name}`)),
    };
    return await Promise.resolve(runtime);
  };
  return { events, open };
}

function parts(sandbox: Record<string, unknown>): Parameters<typeof chooseRuntimes>[0] {
  const logger = createLogger({ level: "error", format: "json", write: () => undefined });
  return { config: configSchema.parse({ sandbox }), logger, templates: new Templates() };
}

function missing(template: string | undefined): OwlError {
  const options = { retryable: true, facts: { reason: "image_missing" } };
  return new OwlError("sandbox_unavailable", `no image of ${template}`, options);
}

const DOWN = new OwlError("sandbox_unavailable", "no engine", { retryable: true, facts: { reason: "engine_down" } });

const ABSENT = new OwlError("sandbox_unavailable", "no package", { facts: { reason: "package_missing" } });

test("auto takes bubblewrap where it works, and asks no engine", async () => {
  const { events, open } = lab({ bubblewrap: "works", docker: "works" });
  expect((await chooseRuntimes(parts({}), open)).usual.name).toBe("bubblewrap");
  expect(events).toEqual(["open bubblewrap in passing"]);
});

test("auto takes docker where the probe of bubblewrap fails, and keeps nothing of bubblewrap", async () => {
  const { events, open } = lab({ bubblewrap: "leaks", docker: "works" });
  expect((await chooseRuntimes(parts({}), open)).usual.name).toBe("docker");
  expect(events).toEqual(["open bubblewrap in passing", "close bubblewrap", "open docker in passing"]);
});

test("auto takes microsandbox where neither bubblewrap nor an engine works", async () => {
  const { events, open } = lab({ bubblewrap: "leaks", docker: DOWN, microsandbox: "works" });
  const templates = { science: { image: "science:3" } };
  const chosen = await chooseRuntimes(parts({ templates }), open);
  expect(chosen.usual.name).toBe("microsandbox");
  expect(chosen.byTemplate.get("science")).toBe(chosen.usual);
  expect(events.at(-1)).toBe("open microsandbox in passing");
});

test("where nothing works, auto says why of bubblewrap, and of an engine only if there is one", async () => {
  const down = lab({ bubblewrap: "leaks", docker: DOWN, microsandbox: ABSENT });
  await expect(chooseRuntimes(parts({}), down.open)).rejects.toThrow(
    /^bubblewrap cannot run sandboxes here: bubblewrap leaks$/,
  );
  const image = new OwlError("sandbox_unavailable", "no image");
  const there = lab({ bubblewrap: "leaks", docker: image, microsandbox: ABSENT });
  await expect(chooseRuntimes(parts({}), there.open)).rejects.toThrow(/bubblewrap leaks; no image$/);
});

test("what a dead server left and cannot be removed keeps no runtime from starting", async () => {
  const { open } = lab({ bubblewrap: "works" });
  const logged: string[] = [];
  const logger = createLogger({ level: "error", format: "json", write: (line) => void logged.push(line) });
  const reap = async (): Promise<never> => await Promise.reject(new Error("EACCES: /srv/data/sandboxes/owl-1"));
  const withLeftovers: OpenRuntime = async (opening) => ({ ...(await open(opening)), reap });
  const chosen = await chooseRuntimes({ ...parts({}), logger }, withLeftovers);
  expect(chosen.usual.name).toBe("bubblewrap");
  expect(logged.join("")).toContain("/srv/data/sandboxes/owl-1");
});

test.each(["auto", "bubblewrap"])(
  "with %s, an error of the system says what it is without its path",
  async (runtime) => {
    const open: OpenRuntime = async () => {
      await readFile("/no/such/folder/guest.mjs");
      throw new Error("it is there");
    };
    const failure = chooseRuntimes(parts({ runtime }), open);
    await expect(failure).rejects.toThrow("ENOENT (open)");
    await expect(failure).rejects.not.toThrow("/no/such");
  },
);

test("a runtime that was named is the only one that is tried", async () => {
  const { events, open } = lab({ bubblewrap: "works", docker: DOWN });
  await expect(chooseRuntimes(parts({ runtime: "docker" }), open)).rejects.toBe(DOWN);
  expect(events).toEqual(["open docker"]);
});

test("a template's own runtime is opened by its first sandbox, and again if that failed", async () => {
  const templates = { science: { image: "science:3" }, node: { runtime: "bubblewrap" }, python: {} };
  const { events, open } = lab({ bubblewrap: "works", docker: DOWN });
  const chosen = await chooseRuntimes(parts({ templates }), open);
  expect([...chosen.byTemplate].map(([template, { name }]) => [template, name])).toEqual([
    ["science", "docker"],
    ["node", "bubblewrap"],
  ]);
  expect(events).toEqual(["open bubblewrap in passing"]);
  const late = chosen.byTemplate.get("science");
  for (let tries = 0; tries < 2; tries += 1) await expect(late?.probe(AbortSignal.abort())).rejects.toBe(DOWN);
  expect(events.slice(1)).toEqual(["open docker", "open docker"]);
  await chosen.close();
  expect(events.at(-1)).toBe("close bubblewrap");
});

describe("the probe starts from an image that is used:", () => {
  const ofTwo = { boxed: { image: "boxed:1" }, science: { image: "science:3" } };

  test.each([
    ["boxed", ofTwo],
    ["science", ofTwo],
    // This one has the usual image.
    ["node", { ...ofTwo, node: { runtime: "docker" } }],
  ])("any of the templates that a runtime is for, as that of %s", async (only, templates) => {
    const { open } = lab({ bubblewrap: "works", docker: "works" }, (template) => template === only);
    const chosen = await chooseRuntimes(parts({ runtime: "bubblewrap", templates }), open);
    expect(await chosen.byTemplate.get("science")?.reap()).toEqual({ removed: [] });
  });

  test("where none of them is there, the first is named", async () => {
    const { open } = lab({ bubblewrap: "works", docker: "works" }, () => false);
    const chosen = await chooseRuntimes(parts({ runtime: "bubblewrap", templates: ofTwo }), open);
    await expect(chosen.byTemplate.get("science")?.reap()).rejects.toThrow("no image of boxed");
  });

  test("that of whoever names no template, where it is for all", async () => {
    const { open } = lab({ docker: "works" }, (template) => template === "science");
    const sandbox = { runtime: "docker", templates: ofTwo };
    await expect(chooseRuntimes(parts(sandbox), open)).rejects.toThrow("no image of python");
    const chosen = await chooseRuntimes(parts({ ...sandbox, template: "science" }), open);
    expect(chosen.usual.name).toBe("docker");
  });
});

test("auto takes an engine that comes later, and does not try again what cannot work here", async () => {
  const fates: Record<string, Fate> = { bubblewrap: "leaks", docker: DOWN, microsandbox: ABSENT };
  const { events, open } = lab(fates);
  const failedRuntimes: FailedRuntimes = new Map();
  const failed = chooseRuntimes(parts({}), open, failedRuntimes);
  await expect(failed).rejects.toMatchObject({
    message: expect.stringMatching(/: bubblewrap leaks$/) as unknown,
    retryable: true,
  });
  fates["docker"] = "works";
  events.length = 0;
  expect((await chooseRuntimes(parts({}), open, failedRuntimes)).usual.name).toBe("docker");
  expect(events).toEqual(["open docker in passing"]);
});

test("where nothing can come by itself, auto's failure is final", async () => {
  const { open } = lab({ bubblewrap: "leaks", docker: "leaks", microsandbox: ABSENT });
  await expect(chooseRuntimes(parts({}), open)).rejects.toMatchObject({ retryable: false });
});

test("what keeps a template's runtime from opening is known before anybody needs it, and it opens when it can", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const fates: Record<string, Fate> = { bubblewrap: "works", docker: DOWN };
  const { events, open } = lab(fates);
  const chosen = await chooseRuntimes(parts({ templates: { science: { image: "science:3" } } }), open);
  const late = chosen.byTemplate.get("science");
  chosen.openAhead();
  await vi.waitFor(() => expect(late?.problem?.()).toEqual({ error: DOWN }), 20_000);
  fates["docker"] = "works";
  await vi.runOnlyPendingTimersAsync();
  expect(late?.problem?.()).toBeUndefined();
  expect(events).toEqual(["open bubblewrap in passing", "open docker", "open docker"]);
  await chosen.close();
  expect(events.slice(3).toSorted()).toEqual(["close bubblewrap", "close docker"]);
});

test("a server that stops ends what it opens ahead, and keeps nothing of it", async () => {
  const { events, open } = lab({ bubblewrap: "works", docker: "hangs" });
  const chosen = await chooseRuntimes(parts({ templates: { science: { image: "science:3" } } }), open);
  chosen.openAhead();
  await vi.waitFor(() => expect(events).toContain("probe docker"), 20_000);
  await chosen.close();
  expect(events.slice(-2).toSorted()).toEqual(["close bubblewrap", "close docker"]);
});
