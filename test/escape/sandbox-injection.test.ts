import { existsSync } from "node:fs";
import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test } from "vitest";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { openInside, textOf } from "./sandbox-lab.ts";
import { type InputSchema, type StringPlace, stringPlaces } from "./schema-strings.ts";

const PWNED = `/tmp/owlclaw-${Math.random().toString(36).slice(2)}-pwned`;

/** Each does harm where a text becomes a part of a program, of options or of a protocol. */
const HARMFUL: readonly string[] = [
  `$(touch ${PWNED})`,
  `\`touch ${PWNED}\``,
  `; touch ${PWNED} #`,
  `'; touch ${PWNED}; '`,
  `"; touch ${PWNED}; "`,
  `x\ntouch ${PWNED}\n`,
  `x | touch ${PWNED}`,
  `x || touch ${PWNED}`,
];
const OPTIONS: readonly string[] = ["-rf", "--help", "--", "-", `--pre=touch ${PWNED}`, "-exec", "@/etc/passwd"];
const ODD: readonly string[] = [
  "nul\0nul",
  "\0",
  "line\u2028separator\u2029",
  "next\u0085line",
  "carriage\r\nreturn: x",
  "\u202e\ufeff\u200b",
  "\ud800",
  "../".repeat(50),
  "__proto__",
  "constructor",
  "%s%n%x",
  "x".repeat(100_000),
];
const EVIL = [...HARMFUL, ...OPTIONS, ...ODD];

/** These are programs: what they say is done, inside. */
const PROGRAMS = new Set(["code", "command"]);
/** What a call needs beside the text in question. */
const NEEDED = { path: "a.txt", content: "x", pattern: "text", old_text: "text", new_text: "text", process_id: "none" };
const DIALECTS = ["native", "microsandbox", "open-sandbox"];

interface Tried {
  readonly tool: string;
  readonly place: StringPlace;
}

let server: Server;
let client: Client;
let listed: string[];
let tried: Tried[];

beforeAll(async () => {
  server = new Server(makePlace(), {
    sandbox: { maxPerPrincipal: 50, limits: "best-effort" },
    tools: { dialects: DIALECTS },
  });
  client = await connectHttp(await server.url());
  const { tools } = await client.listTools();
  listed = tools.map(({ name }) => name);
  tried = tools.flatMap(({ name: tool, inputSchema }) =>
    stringPlaces(inputSchema as InputSchema, NEEDED).map((place) => ({ tool, place })),
  );
});

test("every tool under every name is among those tried, with the places where it takes a text", () => {
  expect(listed.filter((name) => !tried.some(({ tool }) => tool === name))).toEqual([]);
  expect(listed.length).toBeGreaterThanOrEqual(24);
  const places = new Set(tried.map(({ tool, place }) => `${tool} ${place.name}`));
  for (const place of ["sandbox_create env.*", "sandbox_create labels.<key>", "shell_exec env.<key>"])
    expect(places).toContain(place);
});

test("no text of a caller is an option, a program or the end of a string, in any argument of any tool", async () => {
  const inside = await openInside(client);
  await inside.call("file_write", { path: "a.txt", content: "text" });
  let calls = 0;
  const tryOne = async (tool: string, place: StringPlace, evil: string): Promise<void> => {
    // A selector that fits nothing is waited for.
    const filled = { ...place.fill(evil), ...(isOfBrowser(tool) && { timeout_seconds: 0.2 }) };
    const args = "session_id" in filled || tool === "sandbox_create" ? filled : { ...filled, session_id: inside.id };
    const said = await call(client, tool, withoutUnknown(tool, args)).then(textOf, (error: Error) => error.message);
    // An id is drawn from letters that could spell anything.
    const told = said.replaceAll(/"session_id":\s*"[\w-]+"/g, "");
    expect(told, `${tool} ${place.name} ${JSON.stringify(evil)}`).not.toMatch(
      /internal error|ERR_|TypeError|"kind":"internal"/,
    );
    calls += 1;
  };
  for (const { tool, place } of tried) {
    const texts = textsFor(tool, place);
    // Files and commands of one sandbox do not wait for each other; pages do, and sandboxes have to fit in.
    const atOnce = isOfBrowser(tool) || tool === "sandbox_create" ? 1 : 6;
    for (let at = 0; at < texts.length; at += atOnce)
      await Promise.all(texts.slice(at, at + atOnce).map((evil) => tryOne(tool, place, evil)));
    if (tool === "sandbox_create") await destroyOthers(inside.id);
  }
  expect(calls).toBeGreaterThan(1000);
  expect(await inside.sh(`ls ${PWNED}`)).toBe("");
  expect(existsSync(PWNED)).toBe(false);
  expect(await inside.sh("cat a.txt; echo; id -un")).toMatch(/sandbox\n$/);
  expect(server.log.filter(({ level }) => level === "error" || level === "critical")).toEqual([]);
}, 240_000);

/** Under their other names the same tools run: the long run tries all texts there too. */
const NATIVE = /^(?:browser|code|file|sandbox|shell)_/;
const SOME = EVIL.filter((_, index) => index % 4 === 0);
const FEW = ["$(x)", "--x", "\0", "__proto__"];
/** What becomes an address or a file; the rest stays in the browser. */
const OF_BROWSER = new Set(["goto url", "screenshot path"]);

function isOfBrowser(tool: string): boolean {
  return /^browser[_.]/.test(tool);
}

function textsFor(tool: string, { name }: StringPlace): readonly string[] {
  if (PROGRAMS.has(name)) return ODD;
  if (isOfBrowser(tool) && !OF_BROWSER.has(`${tool.replace("browser_", "")} ${name}`)) return FEW;
  // Each try starts a sandbox. Nothing reads labels, and values of variables have tests of their own below.
  if (name.startsWith("labels")) return FEW;
  // All tools find the sandbox in the same way.
  if (name === "session_id" && tool !== "file_read") return FEW;
  return name !== "env.*" && (NATIVE.test(tool) || process.env["OWLCLAW_TEST_LONG"] === "1") ? EVIL : SOME;
}

/** Tools that do not know a field refuse the whole call: then nothing would be tried. */
function withoutUnknown(tool: string, args: Record<string, unknown>): Record<string, unknown> {
  const takesSession = tried.some((each) => each.tool === tool && each.place.name === "session_id");
  if (takesSession) return args;
  const { session_id: _session, ...rest } = args;
  return rest;
}

async function destroyOthers(kept: string): Promise<void> {
  const { structuredContent } = await call(client, "sandbox_list");
  const sandboxes = structuredContent?.["sandboxes"] as { session_id: string }[];
  for (const { session_id } of sandboxes)
    if (session_id !== kept) await call(client, "sandbox_destroy", { session_id });
}

test.each(HARMFUL)("%j does harm where a program is put together from text", async (evil) => {
  const inside = await openInside(client);
  const quotes = evil.startsWith("'") ? "'" : evil.startsWith('"') ? '"' : "";
  await inside.sh(`cat ${quotes}${evil}${quotes}`);
  expect(await inside.sh(`ls ${PWNED}`)).toBe(`${PWNED}\n`);
  await inside.call("sandbox_destroy");
});

test.each(["-rf", "--help", "-"])("%j is an option where nothing says that options have ended", async (evil) => {
  const inside = await openInside(client);
  await inside.call("file_write", { path: evil, content: "a file" });
  expect(await inside.sh(`cat ${evil} < /dev/null`)).not.toBe("a file");
  expect((await inside.call("file_read", { path: evil })).structuredContent).toMatchObject({ content: "a file" });
});

test.each(["-c", "--version", "-", "--"])("a command that starts with a dash (%s) is a command", async (command) => {
  const inside = await openInside(client);
  const said = textOf(await inside.call("shell_exec", { command }));
  expect(said).not.toContain("GNU bash");
  expect(said).toMatch(/127|not found/);
});

describe("a variable of a sandbox", () => {
  // Options of the isolation are separated by NUL: a value with one could add a mount of its own.
  test.each([
    ["value", { A: "x\0--bind\0/\0/workspace3\0--setenv\0B\0y" }],
    ["name", { "A\0--bind\0/\0/workspace3\0--setenv\0B": "y" }],
    ["reserved name", { LD_PRELOAD: "/workspace/x.so" }],
  ])("whose %s could change the isolation is refused", async (_what, env) => {
    const said = await call(client, "sandbox_create", { env }).then(
      (made) => (made.isError === true ? textOf(made) : "made"),
      (error: Error) => error.message,
    );
    expect(said).toMatch(/not a variable|invalid argument/);
  });

  test.each([["x\n--bind\n/\n/workspace3"], ["--share-net"], [`"; touch ${PWNED}; "$(touch ${PWNED})`]])(
    "with the value %j has that value and changes nothing else",
    async (value) => {
      const inside = await openInside(client, { env: { A: value }, labels: { "a\0b": value } });
      expect(await inside.sh('printf %s "$A"')).toBe(value);
      expect(await inside.sh(`ls -d /workspace3 ${PWNED}; grep -c : /proc/net/dev`)).toBe("1\n");
    },
  );
});
