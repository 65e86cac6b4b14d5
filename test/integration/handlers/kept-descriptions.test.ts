import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { BIN, environment, type HttpServer, type LogLine, startHttp, until, writeConfig } from "../harness.ts";
import { plain, plainCall } from "../http-client.ts";
import { text, type Unchecked } from "../wire-messages.ts";

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-kept-"));
const at = (name: string): string => path.join(folder, name);

/** Each says in the log when it is loaded. `outside/` is where no text points to by a place beside it. */
const FILES: Readonly<Record<string, string>> = {
  "handlers/typed.ts": `console.log("loaded typed");
const born = Math.random();
/** Says which copy of the file answers. */
export async function typed_copy(): Promise<string> { return process.pid + " " + born; }
`,
  "handlers/defined.ts": `import { readFileSync } from "node:fs";
import { defineHandler, definePrompt, defineResource } from "owlclaw";
import { WORDS } from "./_words.ts";
console.log("loaded defined");
const data = JSON.parse(readFileSync(new URL("./data.json", import.meta.url), "utf8"));
export const tool = defineHandler({
  name: "defined", description: [WORDS, data.text, process.env.SHOP_NAME].join(", "), run: () => "ran",
});
export const resource = defineResource({ uri: "kept://one", name: "one", read: () => "read" });
export const prompt = definePrompt({ name: "kept_prompt", run: () => "prompted" });
`,
  "handlers/_words.ts": 'export const WORDS: string = "First words";\n',
  "handlers/data.json": '{"text":"first data"}',
  "handlers/shop.py": `import os
import random
from _shop_words import WORDS
print("loaded shop")
BORN = random.random()

def copy_sync() -> str:
    """Says which copy of the file answers."""
    return f"{os.getpid()} {BORN}"

async def copy_async() -> str:
    """Says which copy of the file answers."""
    return f"{os.getpid()} {BORN}"

def worded() -> str:
    return WORDS

worded.__doc__ = WORDS
`,
  "handlers/_shop_words.py": 'WORDS = "First words of Python."\n',
  "handlers/needy.ts": `import { readFileSync } from "node:fs";
const said = readFileSync("${folder}/outside/needed.txt", "utf8");
/** Needs a file to be loaded. */
export function needy(): string { return said; }
`,
  "handlers/told.ts": `import { readFileSync } from "node:fs";
import { defineHandler } from "owlclaw";
const description = readFileSync("${folder}/outside/told.txt", "utf8");
export const told = defineHandler({ name: "told", description, run: () => "" });
`,
  "handlers/broken.ts": "export const = ;\n",
  "outside/needed.txt": "here",
  "outside/told.txt": "As it was told first.",
};

const write = (name: string, content = FILES[name] ?? ""): void => writeFileSync(at(name), content);
let server: HttpServer;

const CONFIG = { handlers: { paths: [at("handlers")] } };
const ENVIRONMENT = { SHOP_NAME: "First shop" };

async function start(env: Readonly<Record<string, string>> = ENVIRONMENT): Promise<void> {
  server = await startHttp({ config: CONFIG, env });
}

async function restart(change: () => void): Promise<void> {
  await server.stop();
  change();
  await start();
}

const nothing = (): void => undefined;

async function list(method: string, field: string): Promise<Unchecked[]> {
  return (await plain(server.url, method, {})).body.result?.[field];
}

async function described(name: string): Promise<string | undefined> {
  const tools = await list("tools/list", "tools");
  return tools.find((tool) => tool.name === name)?.description;
}

function loadedOf(logs: readonly LogLine[]): string[] {
  return logs.flatMap((line) => (JSON.stringify(line).match(/loaded \w+/) ?? []).slice(0, 1));
}

/** What handlers had said before the server opened its door. */
function loadedBeforeTheDoor({ logs } = server): string[] {
  return loadedOf(
    logs.slice(
      0,
      logs.findIndex((line) => line["message"] === "listening"),
    ),
  );
}

const ALL = new Set(["loaded typed", "loaded defined", "loaded shop"]);

/** What they have said when all have spoken. */
async function loadedInTheEnd({ logs } = server): Promise<Set<string>> {
  return until(
    () => new Set(loadedOf(logs)),
    ({ size }) => size === ALL.size,
  );
}

beforeAll(async () => {
  for (const name of Object.keys(FILES)) {
    mkdirSync(path.dirname(at(name)), { recursive: true });
    write(name);
  }
  await start();
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe("a start with files that are as they were", () => {
  test("serves the same lists, and loads no file for it", async () => {
    const all = async (): Promise<unknown> => [
      await list("tools/list", "tools"),
      await list("resources/list", "resources"),
      await list("prompts/list", "prompts"),
    ];
    const before = await all();
    await restart(nothing);
    expect(await all()).toEqual(before);
    expect(loadedBeforeTheDoor()).toEqual([]);
    expect((await list("tools/list", "tools")).map(({ name }) => name)).toEqual([
      "copy_async",
      "copy_sync",
      "defined",
      "needy",
      "told",
      "typed_copy",
      "worded",
    ]);
  });

  test("loads a file with its first call, once, however many come at the same time", async () => {
    const names = Array.from({ length: 12 }, () => ["typed_copy", "copy_sync", "copy_async"]).flat();
    const answers = await Promise.all(names.map(async (name) => text((await plainCall(server.url, name, {})).body)));
    const copies = new Map<string, Set<string>>();
    for (const answer of answers) {
      const [pid = "", born = ""] = String(answer).split(" ");
      expect(Number(born)).toBeGreaterThan(0);
      copies.set(pid, (copies.get(pid) ?? new Set()).add(born));
    }
    expect([...copies.values()].map(({ size }) => size)).toEqual(Array.from({ length: copies.size }, () => 1));
    expect(text((await plainCall(server.url, "defined", {})).body)).toBe("ran");
  });

  test("loads the rest by itself after a while", async () => {
    expect(await loadedInTheEnd()).toEqual(ALL);
  });

  test("loads nothing before the door is open, however late that is", async () => {
    // It takes connections and says nothing: for some seconds the server waits for keys, with everything else done.
    const silent = createServer().listen(0, "127.0.0.1");
    onTestFinished(() => void silent.close());
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const auth = { enabled: true, jwt: { jwksUrl: `http://127.0.0.1:${port}/keys`, issuer: "https://issuer.test" } };
    const late = await startHttp({ config: { ...CONFIG, auth }, env: ENVIRONMENT });
    onTestFinished(() => late.stop());
    expect(late.logs).toContainEqual(expect.objectContaining({ message: "The JWKS cannot be fetched." }));
    expect(loadedBeforeTheDoor(late)).toEqual([]);
    expect(await loadedInTheEnd(late)).toEqual(ALL);
  });

  test("tells again of a file that cannot be loaded", async () => {
    const { file } = await server.logged("handler file cannot be used");
    expect(file).toBe(at("handlers/broken.ts"));
  });
});

describe("a start after a change", () => {
  test("of files that others import shows it", async () => {
    expect(await described("defined")).toBe("First words, first data, First shop");
    expect(await described("worded")).toBe("First words of Python.");
    await restart(() => {
      write("handlers/_words.ts", 'export const WORDS: string = "Other words";\n');
      write("handlers/_shop_words.py", 'WORDS = "Other words of Python."\n');
    });
    expect(await described("defined")).toBe("Other words, first data, First shop");
    expect(await described("worded")).toBe("Other words of Python.");
  });

  test("of a data file that a handler names shows it", async () => {
    await restart(() => write("handlers/data.json", '{"text":"other data"}'));
    expect(await described("defined")).toBe("Other words, other data, First shop");
  });
});

/** Nothing in a text points to what differs here: the files are the same, and what they find is not. */
describe("a start in another world", () => {
  test("a call whose file cannot be loaded any more is told why", async () => {
    await server.stop();
    write("outside/told.txt", "As it is told now.");
    rmSync(at("outside/needed.txt"));
    const config = writeConfig({ config: CONFIG });
    const args = [BIN, "mcp-server", "tools", "call", "needy", "--config", config];
    const env = environment({ env: ENVIRONMENT });
    await expect(promisify(execFile)(process.execPath, args, { env })).rejects.toThrow(
      /its file could not be loaded: ENOENT.*needed\.txt/,
    );
    await start({ SHOP_NAME: "Second shop" });
  });

  test("of a variable that a handler names shows it", async () => {
    expect(await described("defined")).toBe("Other words, other data, Second shop");
  });

  test("the list follows when the file is loaded", async () => {
    const shown = await until(
      () => described("told"),
      (text) => text !== "As it was told first.",
    );
    expect(shown).toBe("As it is told now.");
  });

  test("what cannot be loaded is reported and taken away, and comes back when it is repaired", async () => {
    const log = await until(
      () => server.logs.find((line) => line["file"] === at("handlers/needy.ts")),
      (line) => line !== undefined,
    );
    const reason: unknown = expect.stringContaining("needed.txt");
    expect(log).toMatchObject({ message: "handler file cannot be used", reason });
    await until(
      () => described("needy"),
      (shown) => shown === undefined,
    );
    expect(text((await plainCall(server.url, "defined", {})).body)).toBe("ran");
    write("outside/needed.txt");
    write("handlers/needy.ts", `${FILES["handlers/needy.ts"]}// repaired\n`);
    await until(
      async () => (await plainCall(server.url, "needy", {})).body,
      (body) => text(body) === "here",
    );
  });
});
