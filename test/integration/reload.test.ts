import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { type HttpServer, startHttp, until } from "./harness.ts";

interface Changing {
  readonly server: HttpServer;
  change(values: Record<string, unknown>): void;
}

/** A server with a config file of its own that can be written anew. */
async function startChanging(values: Record<string, unknown> = {}): Promise<Changing> {
  const server = await startHttp({ config: { sandbox: { enabled: false, root: temporaryFolder({}) }, ...values } });
  const file = server.child.spawnargs[server.child.spawnargs.indexOf("--config") + 1] ?? "";
  const before = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
  // A server that has started has read its file; what is written now is a change.
  await server.logged("server started");
  const change: Changing["change"] = (next) => {
    writeFileSync(`${file}.next`, JSON.stringify({ ...before, ...next }));
    renameSync(`${file}.next`, file);
  };
  return { server, change };
}

async function list<Item>(server: HttpServer, kind: "tools" | "resources"): Promise<readonly Item[]> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: `${kind}/list`, params: {} });
  const headers = { "content-type": "application/json" };
  const answer = (await (await fetch(server.url, { method: "POST", headers, body })).json()) as {
    result: Record<string, Item[]>;
  };
  return answer.result[kind] ?? [];
}

async function tools(server: HttpServer): Promise<string[]> {
  return (await list<{ name: string }>(server, "tools")).map(({ name }) => name);
}

async function skillUris(server: HttpServer): Promise<string[]> {
  const resources = await list<{ uri: string }>(server, "resources");
  return resources.map(({ uri }) => uri).filter((uri) => uri.startsWith("skill://shop/"));
}

const debugLines = (server: HttpServer): number => server.logs.filter(({ level }) => level === "debug").length;

test("[004-R11.5] the level of the log changes with the file, while the server runs", async () => {
  const { server, change } = await startChanging();
  expect(debugLines(server)).toBe(0);
  change({ logging: { level: "debug" } });
  await until(
    async () => {
      await tools(server);
      return debugLines(server);
    },
    (count) => count > 0,
  );
  await server.stop();
});

test("a configuration that is wrong anywhere changes nothing, and is told with its fix", async () => {
  const { server, change } = await startChanging();
  change({
    logging: { level: "debug" },
    governance: { defaults: { hidden: ["echo"] } },
    tools: { timeoutSeconds: "soon" },
  });
  const refused = await server.logged("configuration refused, the old one stays in force");
  expect(refused).toMatchObject({ problems: [expect.stringContaining("tools.timeoutSeconds")] });
  expect(await tools(server)).toContain("echo");
  expect(debugLines(server)).toBe(0);
  await server.stop();
});

test("a policy that is wrong keeps the level from changing, too", async () => {
  const { server, change } = await startChanging();
  change({
    logging: { level: "debug" },
    governance: { rules: [{ id: "x", when: "no such thing (", effect: "deny", reason: "r" }] },
  });
  await server.logged("configuration refused, the old one stays in force");
  await tools(server);
  expect(debugLines(server)).toBe(0);
  await server.stop();
});

test("what counts only after a restart is named", async () => {
  const { server, change } = await startChanging();
  change({ tools: { timeoutSeconds: 7 } });
  expect(await server.logged("these settings count after a restart")).toMatchObject({ keys: ["tools.timeoutSeconds"] });
  await server.stop();
});

test("SIGHUP has handlers, skills and policy read again, where nobody watches them", async () => {
  const folder = temporaryFolder({ "one.ts": handler("first"), "other.ts": handler("other") });
  const skills = temporaryFolder({});
  const writeSkill = (name: string): void => {
    mkdirSync(path.join(skills, "shop", name), { recursive: true });
    writeFileSync(path.join(skills, "shop", name, "SKILL.md"), `---\nname: ${name}\ndescription: d\n---\nText.\n`);
  };
  writeSkill("early");
  const values = {
    handlers: { paths: [path.join(folder, "*.ts")], watch: false },
    skills: { dir: skills, watch: false },
  };
  const { server, change } = await startChanging(values);
  expect(await tools(server)).toEqual(["first", "other", "skill_search"]);
  expect(await skillUris(server)).toEqual(["skill://shop/early"]);
  writeFileSync(path.join(folder, "one.ts"), handler("second"));
  writeSkill("late");
  change({ ...values, governance: { defaults: { hidden: ["other"] } } });
  server.child.kill("SIGHUP");
  await server.logged("reloaded");
  expect(await tools(server)).toEqual(["second", "skill_search"]);
  expect(await skillUris(server)).toEqual(["skill://shop/early", "skill://shop/late"]);
  await server.stop();
});

function handler(name: string): string {
  return `import { defineHandler } from "owlclaw";\nexport const it = defineHandler({ name: "${name}", description: "d", run: () => "x" });\n`;
}
