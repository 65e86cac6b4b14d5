import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type HttpServer, startHttp, until } from "../harness.ts";
import { closeStreams, HttpSession, plain, plainCall } from "../http-client.ts";
import { text } from "../wire-messages.ts";

let folder: string;
let server: HttpServer;

const say = (name: string, word: string): string => `
import { defineHandler } from "owlclaw";
import { WORD } from "./_word.mjs";
export const ${name} = defineHandler({
  name: "${name}",
  description: "Says ${word}",
  async run() {
    await new Promise((resolve) => setTimeout(resolve, 50));
    return "${word} " + WORD;
  },
});
`;

const write = (name: string, content: string): void => {
  // As editors do: a reader sees the old file or the new one.
  writeFileSync(path.join(folder, `.${name}.new`), content);
  renameSync(path.join(folder, `.${name}.new`), path.join(folder, name));
};

beforeEach(async () => {
  folder = mkdtempSync(path.join(tmpdir(), "owlclaw-watch-"));
  write("_word.mjs", 'export const WORD = "there";');
  write("one.mjs", say("one", "first"));
  write("two.mjs", say("two", "second"));
  write("three.py", 'def three() -> str:\n    """Says it in Python."""\n    return "python"\n');
  server = await startHttp({ config: { handlers: { paths: [folder] } } });
});

afterEach(async () => {
  closeStreams();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const call = async (name: string) => text((await plainCall(server.url, name)).body);
const names = async (): Promise<string[]> =>
  (await plain(server.url, "tools/list")).body.result?.["tools"].map(({ name }: { name: string }) => name);

describe("a handler file that changes", () => {
  test("has its new code and description after one notification; no call is lost", async () => {
    const session = await HttpSession.open(server.url);
    const stream = await session.listen();
    const changing = new AbortController();
    const failures: unknown[] = [];
    const load = (async () => {
      while (!changing.signal.aborted) {
        const { body } = await plainCall(server.url, "one");
        if (body.result === undefined) failures.push(body);
      }
    })();
    write("one.mjs", say("one", "changed"));
    await stream.event(({ data }) => data.includes("notifications/tools/list_changed"));
    expect(await call("one")).toBe("changed there");
    expect(await call("two")).toBe("second there");
    changing.abort();
    await load;
    expect(failures).toEqual([]);
    const { tools } = (await plain(server.url, "tools/list")).body.result ?? {};
    expect(tools[0]).toMatchObject({ name: "one", description: "Says changed" });
  });

  test("and was saved broken is served as it was, named once in the log, and works again when it is repaired", async () => {
    write("one.mjs", "export const = ;");
    await until(
      () => problems("one.mjs").length,
      (count) => count > 0,
    );
    expect(await call("one")).toBe("first there");
    write("one.mjs", "export const = ;\n");
    write("two.mjs", say("two", "fresh"));
    await until(
      () => call("two"),
      (said) => said === "fresh there",
    );
    expect(await call("one")).toBe("first there");
    expect(problems("one.mjs")).toHaveLength(1);
    write("one.mjs", say("one", "repaired"));
    await until(
      () => call("one"),
      (said) => said === "repaired there",
    );
  });

  test("or a helper of it that changes: everything that imports it has the new one", async () => {
    write("_word.mjs", 'export const WORD = "here";');
    await until(
      () => call("one"),
      (said) => said === "first here",
    );
    expect(await call("two")).toBe("second here");
  });

  test("in what works, beside a function that cannot be served, is not held back by that function", async () => {
    const text = (word: string): string =>
      `def bad(value: complex) -> str:\n    """Cannot be served."""\n    return ""\n\n\ndef five() -> str:\n    """Works."""\n    return "${word}"\n`;
    write("five.py", text("old"));
    await until(names, (found) => found.includes("five"));
    write("five.py", text("new"));
    const said = await until(
      () => call("five"),
      (word) => word === "new",
    );
    expect(said).toBe("new");
  });

  test("comes and goes with its tools, Python included", async () => {
    expect(await names()).toEqual(["one", "three", "two"]);
    rmSync(path.join(folder, "one.mjs"));
    write("four.py", 'def four() -> str:\n    """A new one."""\n    return "new"\n');
    write("three.py", 'def three() -> str:\n    """Says it in Python."""\n    return "snake"\n');
    await until(names, (found) => found.join() === "four,three,two");
    await until(
      () => call("three"),
      (said) => said === "snake",
    );
    expect(await call("four")).toBe("new");
  });

  test("lets a call that runs finish with the code it started with", async () => {
    write("slow.mjs", slow("old"));
    await until(names, (found) => found.includes("slow"));
    const running = call("slow");
    write("slow.mjs", slow("new"));
    const next = await until(
      async () => (await call("version")) ?? "",
      (said) => said === "new",
    );
    expect(next).toBe("new");
    expect(await running).toBe("old");
  });
});

function slow(word: string): string {
  return `
import { defineHandler } from "owlclaw";
export const slow = defineHandler({
  name: "slow",
  description: "Takes a while",
  run: () => new Promise((resolve) => setTimeout(() => resolve("${word}"), 2500)),
});
export const version = defineHandler({ name: "version", description: "Says its version", run: () => "${word}" });
`;
}

function problems(name: string): unknown[] {
  return server.logs.filter(
    ({ message, file }) => message === "handler file cannot be used" && String(file).endsWith(name),
  );
}
