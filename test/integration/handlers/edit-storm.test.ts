import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { type HttpServer, startHttp, until } from "../harness.ts";
import { plain, plainCall } from "../http-client.ts";
import { connect } from "../sdk-clients.ts";
import { skill } from "../skill-fixture.ts";
import { text } from "../wire-messages.ts";

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-storm-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const write = (name: string, content: string): void => {
  const file = path.join(folder, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, content);
};

/** What is under load: how version N of it is written and how broken, and which version an answer is from. */
interface Edited {
  readonly file: string;
  readonly broken: string;
  readonly renamed?: string;
  version(n: number): string;
  ask(): Promise<string>;
}

const toolText = async (name: string): Promise<string> => {
  const { body } = await plainCall(server.url, name);
  return text(body) ?? `lost: ${JSON.stringify(body)}`;
};

const EDITED: Readonly<Record<string, Edited>> = {
  typescript: {
    file: "handlers/greet.ts",
    renamed: "handlers/renamed.ts",
    broken: "/** Greets. */\nexport function greet(: string",
    version: (n) => `/** Greets, version ${n}. */\nexport function greet(): string { return "version ${n}"; }\n`,
    ask: () => toolText("greet"),
  },
  python: {
    file: "handlers/stock.py",
    renamed: "handlers/renamed.py",
    broken: "def stock(:\n",
    version: (n) => `def stock() -> str:\n    """Counts, version ${n}."""\n    return "version ${n}"\n`,
    ask: () => toolText("stock"),
  },
  skill: {
    file: "skills/ops/deploy/SKILL.md",
    broken: "---\nname: [deploy\n---\n",
    version: (n) => skill("deploy", `Deploys, version ${n}.`),
    ask: async () => {
      const { body } = await plain(server.url, "resources/read", { uri: "skill://ops/deploy" });
      return body.result?.["contents"][0].text ?? `lost: ${JSON.stringify(body)}`;
    },
  },
};

let server: HttpServer;

beforeEach(async () => {
  rmSync(folder, { recursive: true, force: true });
  for (const { file, version } of Object.values(EDITED)) write(file, version(1));
  write("handlers/_word.mjs", 'export const WORD = "word";');
  const config = { handlers: { paths: [path.join(folder, "handlers")] }, skills: { dir: path.join(folder, "skills") } };
  server = await startHttp({ config });
});

afterEach(async () => {
  await server.stop();
});

const numberIn = (answer: string): number => Number(/version (\d+)/.exec(answer)?.[1]);
const logged = (message: string, file: string): number =>
  server.logs.filter((line) => line["message"] === message && String(line["file"]).includes(file)).length;

/** Makes a change and waits for a new line about it in the log. */
async function told(message: string, file: string, make: () => void): Promise<void> {
  const before = logged(message, file);
  make();
  await until(
    () => logged(message, file),
    (count) => count > before,
  );
}

/** Calls in a loop until it is stopped. After version N was announced, an older one is a stale answer. */
function keepAsking({ ask }: Edited) {
  const state = { announced: 1, calls: 0, isStopped: false };
  const wrong: string[] = [];
  const loop = (async () => {
    while (!state.isStopped) {
      // A machine that only answers calls has no time left for the change.
      await new Promise((resolve) => setTimeout(resolve, 10));
      const due = state.announced;
      const answer = await ask();
      state.calls += 1;
      if (!(numberIn(answer) >= due)) wrong.push(`version ${due} was announced: ${answer}`);
    }
  })();
  return { state, wrong, end: () => ((state.isStopped = true), loop) };
}

/** Calls go on while `work` changes the file; each change is waited for until clients are told of it. */
async function underLoad(
  edited: Edited,
  work: (change: (n: number, make: () => void) => Promise<void>) => Promise<void>,
) {
  const client = await connect({ client: "v2", transport: "http", version: "2025-11-25" }, server.url);
  const load = keepAsking(edited);
  const announcements = (): number =>
    client.notifications.filter(({ method }) => method.endsWith("/list_changed")).length;
  try {
    await work(async (n, make) => {
      const before = announcements();
      make();
      await until(announcements, (count) => count > before);
      load.state.announced = n;
    });
  } finally {
    await load.end();
    await client.close();
  }
  return { calls: load.state.calls, wrong: load.wrong };
}

describe("while clients call, editing files", () => {
  test.each(["typescript", "python"])("%s: no call is lost, none is stale after its notification", async (what) => {
    const edited = EDITED[what] as Edited;
    const renamed = path.join(folder, edited.renamed ?? "");
    const { calls, wrong } = await underLoad(edited, async (change) => {
      await change(2, () => write(edited.file, edited.version(2)));
      await told("handler file cannot be used", edited.file, () => write(edited.file, edited.broken));
      await told("handler file works again", edited.file, () => write(edited.file, edited.version(2)));
      renameSync(path.join(folder, edited.file), renamed);
      await change(3, () => writeFileSync(renamed, edited.version(3)));
    });
    expect(wrong).toEqual([]);
    expect(calls).toBeGreaterThan(20);
    rmSync(renamed);
    expect(await until(edited.ask, (answer) => answer.startsWith("lost"))).toContain("tool_not_found");
  });

  test("skills: no read is lost, none is stale after its notification", async () => {
    const edited = EDITED["skill"] as Edited;
    const { calls, wrong } = await underLoad(edited, async (change) => {
      for (const n of [2, 3]) await change(n, () => write(edited.file, edited.version(n)));
      await told("skill cannot be used", edited.file, () => write(edited.file, edited.broken));
      await change(4, () => write(edited.file, edited.version(4)));
    });
    expect(wrong).toEqual([]);
    expect(calls).toBeGreaterThan(5);
    rmSync(path.join(folder, edited.file));
    expect(await until(edited.ask, (answer) => answer.startsWith("lost"))).toContain("resource_not_found");
  });

  test.each(Object.keys(EDITED))("%s: many saves in a row, broken and good: the last one counts", async (what) => {
    const { file, broken, version, ask } = EDITED[what] as Edited;
    for (let n = 2; n <= 30; n += 1) {
      write(file, n % 3 === 0 ? broken : version(n));
      await new Promise((resolve) => setTimeout(resolve, n * 3));
    }
    write(file, version(31));
    const found = await until(
      () => ask().then(numberIn),
      (n) => n === 31,
    );
    expect(found).toBe(31);
  });
});

describe("a file that is broken on the disk", () => {
  const pidOf = async (name: string): Promise<number> => Number(text((await plainCall(server.url, name)).body));
  const FILES: Readonly<Record<string, { file: string; good: string; spoil: () => void }>> = {
    "TypeScript file": {
      file: "handlers/where.ts",
      good: 'import { WORD } from "./_word.mjs";\n/** Says where. */\nexport function where(): number { return WORD === "word" ? process.pid : 0; }\n',
      spoil: () => write("handlers/where.ts", "export const = ;"),
    },
    "JavaScript file": {
      file: "handlers/where.mjs",
      good: 'import { WORD } from "./_word.mjs";\n/** Says where. @returns {number} */\nexport function where() { return WORD === "word" ? process.pid : 0; }\n',
      spoil: () => write("handlers/where.mjs", "export const = ;"),
    },
    "helper of a file": {
      file: "handlers/where.mjs",
      good: 'import { WORD } from "./_word.mjs";\n/** Says where. @returns {number} */\nexport function where() { return WORD === "word" ? process.pid : 0; }\n',
      spoil: () => write("handlers/_word.mjs", "export const = ;"),
    },
    "Python file": {
      file: "handlers/where.py",
      good: 'import os\nfrom _place import place\n\n\ndef where() -> int:\n    """Says where."""\n    return place()\n',
      spoil: () => {
        write("handlers/where.py", "def where(:\n");
        write("handlers/_place.py", "def place(:\n");
      },
    },
  };

  test.each(Object.keys(FILES))("%s: goes on as it was, even in a new process", async (what) => {
    const { file, good, spoil } = FILES[what] ?? { file: "", good: "", spoil: () => undefined };
    write("handlers/_place.py", "import os\n\n\ndef place() -> int:\n    return os.getpid()\n");
    write(file, good);
    await until(
      async () => (await plain(server.url, "tools/list")).body.result?.["tools"],
      (tools) => tools.some(({ name }: { name: string }) => name === "where"),
    );
    await told("handler file cannot be used", file, spoil);
    for (let death = 0; death < 2; death += 1) {
      const pid = await pidOf("where");
      expect(pid).toBeGreaterThan(0);
      process.kill(pid, "SIGKILL");
      expect(
        await until(
          () => pidOf("where"),
          (found) => found !== pid,
        ),
      ).toBeGreaterThan(0);
    }
  });
});
