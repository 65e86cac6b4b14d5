import { renameSync, rmSync } from "node:fs";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type HttpServer, startHttp, until } from "./harness.ts";
import { closeStreams, plain } from "./http-client.ts";
import { connect, type Door, type TestClient } from "./sdk-clients.ts";
import { skill, skillFolder, writeSkills } from "./skill-fixture.ts";
import { MODERN, type Unchecked } from "./wire-messages.ts";

const FILES = {
  "a/one/SKILL.md": skill("one", "The first"),
  "a/one/references/x.md": "x",
  "a/two/SKILL.md": skill("two", "The second"),
};
const DOORS: readonly Door[] = [
  { client: "v2", transport: "http", version: MODERN, mode: { mode: { pin: MODERN } } },
  { client: "v2", transport: "stdio", version: MODERN, mode: { mode: { pin: MODERN } } },
  { client: "v2", transport: "http", version: "2025-11-25" },
  { client: "v1", transport: "stdio", version: "2025-11-25" },
  { client: "v1", transport: "sse", version: "2025-11-25" },
];

interface Listening {
  listen(filter: Record<string, unknown>): Promise<{ close(): Promise<void> }>;
}

const dir = skillFolder(FILES);
const config = { skills: { dir }, handlers: { paths: [] } };
let server: HttpServer;

beforeEach(async () => {
  rmSync(dir, { recursive: true });
  writeSkills(dir, FILES);
  server = await startHttp({ config });
});

afterEach(async () => {
  closeStreams();
  await server.stop();
});

async function subscribe(client: TestClient, door: Door, uris: readonly string[]): Promise<void> {
  if (door.version === MODERN) {
    await (client as unknown as Listening).listen({ resourcesListChanged: true, resourceSubscriptions: uris });
  } else for (const uri of uris) await client.subscribeResource({ uri });
}

describe.each(DOORS)("[004-R6.10] changes of skills for $client over $transport, $version", (door) => {
  let client: TestClient;

  beforeEach(async () => {
    client = await connect(door, server.url, { config });
  });

  afterEach(() => client.close());

  function heard(): string[] {
    return client.notifications.map(({ method, params }) => `${method.slice(14)} ${params["uri"] ?? ""}`.trim()).sort();
  }

  test("a changed SKILL.md is told once, and what is read then is new", async () => {
    await subscribe(client, door, ["skill://a/one", "skill://a/one/references/x.md"]);
    const text = skill("one", "The first, changed");
    // The server may not be watching yet: then the change is seen when it begins to.
    writeSkills(dir, { "a/one/SKILL.md": text });
    await until(heard, (notes) => notes.length >= 2);
    expect(heard()).toEqual(["resources/list_changed", "resources/updated skill://a/one"]);
    const { contents } = await client.readResource({ uri: "skill://a/one" });
    expect(contents[0].text).toBe(text);
    const { resources } = await client.listResources();
    expect(resources[0].description).toBe("The first, changed");
  });

  test("a skill that comes and a skill that goes are told once each", async () => {
    await subscribe(client, door, ["skill://a/two"]);
    writeSkills(dir, { "b/three/SKILL.md": skill("three", "The third") });
    await until(heard, (notes) => notes.length >= 1);
    expect(heard()).toEqual(["resources/list_changed"]);
    client.notifications.length = 0;
    rmSync(path.join(dir, "a/two"), { recursive: true });
    await until(heard, (notes) => notes.length >= 2);
    expect(heard()).toEqual(["resources/list_changed", "resources/updated skill://a/two"]);
    const { resources } = await client.listResources();
    expect(resources.map(({ name }: { name: string }) => name)).toEqual(["one", "three"]);
  });
});

test("editing, breaking, moving and removing skills under load loses no answer", async () => {
  const over = new AbortController();
  const outcomes = new Set<string>();
  const readers = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) {
      const { body } = await plain(server.url, "resources/read", { uri: "skill://a/two" });
      outcomes.add(body.error === undefined ? "read" : `${body.error.code}`);
      const list = await plain(server.url, "resources/list");
      outcomes.add(list.body.error === undefined ? "listed" : `${list.body.error.code}`);
    }
  });
  for (let round = 0; round < 15; round += 1) {
    writeSkills(dir, { "a/one/SKILL.md": round % 3 === 0 ? "---\nname: [" : skill("one", `Round ${round}`) });
    writeSkills(dir, { [`b/new-${round}/SKILL.md`]: skill(`new-${round}`, "New") });
    if (round % 2 === 1) renameSync(path.join(dir, `b/new-${round}`), path.join(dir, `b/moved-${round}`));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  writeSkills(dir, { "a/one/SKILL.md": skill("one", "The last") });
  const described = async (): Promise<string> => {
    const { body } = await plain(server.url, "resources/list");
    return body.result?.["resources"].find(({ name }: Unchecked) => name === "one")?.description;
  };
  await until(described, (description) => description === "The last");
  over.abort();
  await Promise.all(readers);
  expect([...outcomes].sort()).toEqual(["listed", "read"]);
});

test("[004-R6.9] [004-R10.8] unwatched skills are kept for skills.cacheTtlSeconds, and no longer", async () => {
  const description = async ({ url }: HttpServer): Promise<string> => {
    const { body } = await plain(url, "resources/list");
    return body.result?.["resources"][0].description;
  };
  const start = (cacheTtlSeconds: number): Promise<HttpServer> =>
    startHttp({ config: { ...config, skills: { dir, watch: false, cacheTtlSeconds } } });
  const [patient, eager] = await Promise.all([start(600), start(0.2)]);
  writeSkills(dir, { "a/one/SKILL.md": skill("one", "Changed") });
  await until(
    () => description(eager),
    (text) => text === "Changed",
  );
  expect(await description(patient)).toBe("The first");
  const { body } = await plain(patient.url, "resources/read", { uri: "skill://a/two" });
  expect(body.error).toBeUndefined();
  await Promise.all([patient.stop(), eager.stop()]);
});

test("[004-R10.8] a tool call ends after tools.timeoutSeconds", async () => {
  const hasty = await startHttp({ config: { tools: { timeoutSeconds: 0.3 } } });
  const { body } = await plain(hasty.url, "tools/call", { name: "hold", arguments: { label: "hasty" } });
  expect(body.error).toMatchObject({ code: -32004, data: { kind: "timeout", timeout_ms: 300 } });
  await hasty.stop();
});

describe("2,000 skills", () => {
  const many = skillFolder({});
  let big: HttpServer;

  beforeEach(async () => {
    const files = Array.from({ length: 2000 }, (_, index) => {
      const name = `skill-${String(index).padStart(4, "0")}`;
      return [`c${index % 20}/${name}/SKILL.md`, skill(name, `About topic${index % 50}`)] as const;
    });
    writeSkills(many, Object.fromEntries(files));
    big = await startHttp({ config: { skills: { dir: many }, handlers: { paths: [] } } });
  });

  afterEach(() => big.stop());

  test("are listed in pages and searched; one changed file is told once, and nothing else is", async () => {
    const client = await connect({ client: "v1", transport: "http", version: "2025-11-25" }, big.url);
    const uris = new Set<string>();
    let cursor: string | undefined;
    do {
      const page: Unchecked = await client.listResources(cursor === undefined ? {} : { cursor });
      for (const { uri } of page.resources) uris.add(uri);
      cursor = page.nextCursor;
    } while (cursor !== undefined);
    expect(uris.size).toBe(2000);
    const found = await client.callTool({ name: "skill_search", arguments: { query: "topic7", limit: 50 } });
    expect(found["structuredContent"].total).toBe(40);

    await client.subscribeResource({ uri: "skill://c7/skill-0007" });
    await client.subscribeResource({ uri: "skill://c8/skill-0008" });
    writeSkills(many, { "c7/skill-0007/SKILL.md": skill("skill-0007", "Changed") });
    await until(
      () => client.notifications.length,
      (count) => count >= 2,
    );
    // A second change: whatever the first one still had to say has been said before it.
    writeSkills(many, { "c8/skill-0008/SKILL.md": skill("skill-0008", "Changed too") });
    await until(
      () => client.notifications.length,
      (count) => count >= 4,
    );
    expect(client.notifications.map(({ method, params }) => params["uri"] ?? method)).toEqual([
      "skill://c7/skill-0007",
      "notifications/resources/list_changed",
      "skill://c8/skill-0008",
      "notifications/resources/list_changed",
    ]);
    await client.close();
  });
});
