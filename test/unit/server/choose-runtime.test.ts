import { expect, test } from "vitest";
import { configSchema } from "../../../src/config/schema.ts";
import { OwlError } from "../../../src/errors/owl-error.ts";
import type { Runtime } from "../../../src/runtimes/runtime.ts";
import { Templates } from "../../../src/sandbox/templates.ts";
import { chooseRuntimes } from "../../../src/server/choose-runtime.ts";
import type { OpenRuntime } from "../../../src/server/open-runtime.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";

type Fate = "works" | "leaks" | OwlError;

/** Which were opened and closed, and runtimes that do as they are told. */
function lab(fates: Readonly<Record<string, Fate>>): { readonly events: string[]; readonly open: OpenRuntime } {
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
      probe: async () => await Promise.resolve({ runtime: name, checks: [check] }),
      start: async () => await Promise.reject(new Error(`started by ${name}`)),
      discard: async () => await Promise.resolve(),
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
