import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type HttpServer, startHttp, until } from "../harness.ts";
import { plainCall } from "../http-client.ts";
import { text } from "../wire-messages.ts";

const FILES: Readonly<Record<string, { readonly good: string; readonly broken: string }>> = {
  "where.ts": {
    good: "/** Where. */\nexport function where(): number { return process.pid; }\n",
    broken: "/** Where. */\nexport function where(: number",
  },
  "where.py": {
    good: 'import os\n\n\ndef where() -> int:\n    """Where."""\n    return os.getpid()\n',
    broken: "def where(:\n",
  },
};

let folder: string;
let server: HttpServer | undefined;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), "owlclaw-unseen-"));
});

afterEach(async () => {
  await server?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Nobody looks at the files again, as in the moment between a save and the look at it. */
test.each(Object.entries(FILES))(
  "%s: a new process runs what is served, whatever was saved over it unseen",
  async (name, { good, broken }) => {
    const file = path.join(folder, name);
    writeFileSync(file, good);
    const governance = { defaults: { callsPerMinute: 1_000_000 } };
    server = await startHttp({ config: { handlers: { paths: [folder], watch: false }, governance } });
    const { url } = server;
    const answers: string[] = [];
    const where = async (): Promise<number> => {
      const { body } = await plainCall(url, "where");
      answers.push(text(body) ?? JSON.stringify(body));
      return Number(answers.at(-1));
    };
    let pid = await where();
    writeFileSync(file, broken);
    for (let death = 0; death < 2; death += 1) {
      const before = pid;
      process.kill(pid, "SIGKILL");
      // The one that was killed may have taken a call with it.
      pid = await until(where, (found) => found > 0 && found !== before);
    }
    expect(answers.filter((answer) => answer.includes("loaded"))).toEqual([]);
  },
);
