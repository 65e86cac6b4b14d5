import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type HttpServer, startHttp, until } from "../harness.ts";
import { plain, plainCall } from "../http-client.ts";
import { connect } from "../sdk-clients.ts";
import { skill } from "../skill-fixture.ts";
import { text, type Unchecked } from "../wire-messages.ts";

const FILES = 200;
const FUNCTIONS = 5;
const SKILLS = 2000;

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-many-"));
let server: HttpServer;

const nameOf = (file: number, index: number): string => `tool_${String(file).padStart(3, "0")}_${index}`;

/** Says in the log when it is imported. */
function writeHandlers(file: number, word: string): void {
  const functions = Array.from(
    { length: FUNCTIONS },
    (_, index) =>
      `/** ${word} ${index} of ${file}. */\nexport function ${nameOf(file, index)}(count: number): string { return "${word} " + count; }\n`,
  );
  writeFileSync(
    path.join(folder, `handlers/file-${file}.ts`),
    `console.log("imported ${file}");\n${functions.join("")}`,
  );
}

function writeSkill(index: number, description: string): void {
  const place = path.join(folder, `skills/category-${index % 20}/skill-${index}`);
  mkdirSync(place, { recursive: true });
  writeFileSync(path.join(place, "SKILL.md"), skill(`skill-${index}`, description));
}

beforeAll(async () => {
  mkdirSync(path.join(folder, "handlers"));
  for (let file = 0; file < FILES; file += 1) writeHandlers(file, "First");
  for (let index = 0; index < SKILLS; index += 1) writeSkill(index, `About ${index}`);
  server = await startHttp({
    config: { handlers: { paths: [path.join(folder, "handlers")] }, skills: { dir: path.join(folder, "skills") } },
  });
}, 120_000);

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function pagesOf(method: string, field: string): Promise<Unchecked[][]> {
  const pages: Unchecked[][] = [];
  let cursor: string | undefined;
  do {
    const { result } = (await plain(server.url, method, cursor === undefined ? {} : { cursor })).body;
    pages.push(result?.[field]);
    cursor = result?.["nextCursor"];
  } while (cursor !== undefined);
  return pages;
}

test("[004-R4.1] [004-R4.9] 1,000 handlers of 200 files come in pages of 100, each once and in order", async () => {
  const pages = await pagesOf("tools/list", "tools");
  expect(pages.slice(0, -1).every(({ length }) => length === 100)).toBe(true);
  const names = pages.flat().map(({ name }) => name);
  const expected = Array.from({ length: FILES }, (_, file) =>
    Array.from({ length: FUNCTIONS }, (_unused, index) => nameOf(file, index)),
  ).flat();
  expect(names).toEqual([...expected, "skill_search"].sort());
  expect(text((await plainCall(server.url, nameOf(199, 4), { count: 7 })).body)).toBe("First 7");
});

test("one changed file of 200: one notification, that file alone is imported, all other tools are as they were", async () => {
  const before = (await pagesOf("tools/list", "tools")).flat();
  const client = await connect({ client: "v2", transport: "http", version: "2025-11-25" }, server.url);
  const imported = server.logs.length;
  writeHandlers(7, "Second");
  await until(
    async () => (await plain(server.url, "tools/list")).body.result?.["tools"],
    (tools) => tools.some(({ description }: { description: string }) => description.startsWith("Second")),
  );
  expect(text((await plainCall(server.url, nameOf(7, 0), { count: 1 })).body)).toBe("Second 1");
  const after = (await pagesOf("tools/list", "tools")).flat();
  const changed = after.filter((tool, index) => JSON.stringify(tool) !== JSON.stringify(before[index]));
  expect(changed.map(({ name }) => name)).toEqual(Array.from({ length: FUNCTIONS }, (_, index) => nameOf(7, index)));
  const says = server.logs.slice(imported).filter(({ message }) => message === "handler says");
  expect(new Set(says.map((line) => line["text"]))).toEqual(new Set(["imported 7"]));
  expect(client.notifications.map(({ method }) => method)).toEqual(["notifications/tools/list_changed"]);
  await client.close();
});

test("[004-R6.1] [004-R6.8] 2,000 skills come in pages of 50; one changed is told once and alone is another", async () => {
  const pages = await pagesOf("resources/list", "resources");
  expect(pages.map(({ length }) => length)).toEqual(Array.from({ length: SKILLS / 50 }, () => 50));
  const client = await connect({ client: "v2", transport: "http", version: "2025-11-25" }, server.url);
  writeSkill(7, "About something else");
  const later = await until(
    () => pagesOf("resources/list", "resources"),
    (found) => found.flat().some(({ description }) => description === "About something else"),
  );
  const before = pages.flat();
  const changed = later.flat().filter((entry, index) => JSON.stringify(entry) !== JSON.stringify(before[index]));
  expect(changed.map(({ uri }) => uri)).toEqual(["skill://category-7/skill-7"]);
  expect(client.notifications.map(({ method }) => method)).toEqual(["notifications/resources/list_changed"]);
  await client.close();
});
