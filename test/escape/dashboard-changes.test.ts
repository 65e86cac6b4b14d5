import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { AUTH, PageOperator, token } from "./dashboard-lab.ts";

const SCRIPT = "<script>alert(1)</script>\n";
const SECRET = "what stands outside of the folder";

/** Each name is a file, a link or a pipe, another one every moment. */
const SWAP = `import itertools, os
os.makedirs("swapped", exist_ok=True)
def text(path): open(path, "w").write("text")
makers = [text, lambda path: os.symlink("/etc/passwd", path), text, os.mkfifo, text,
  lambda path: os.symlink("/proc/self/environ", path), text, lambda path: os.symlink("/dev/zero", path)]
for at in itertools.count():
  path = f"swapped/{at % 97}"
  makers[at % 8](path + ".new")
  os.rename(path + ".new", path)
`;

let server: Server;
let eve: Client;
let root: PageOperator;

/** Everything that a folder can hold against whoever reads it. */
beforeAll(async () => {
  const place = makePlace();
  const folder = join(place.folder, "project");
  const at = (name: string): string => join(folder, name);
  mkdirSync(at("deep/".repeat(60)), { recursive: true });
  writeFileSync(join(place.folder, "secret.txt"), SECRET);
  symlinkSync("/etc/passwd", at("passwd"));
  symlinkSync(join(place.folder, "secret.txt"), at("secret"));
  symlinkSync("../secret.txt", at("near"));
  symlinkSync("/etc", at("etc"));
  symlinkSync(".", at("circle"));
  execFileSync("mkfifo", [at("pipe"), at("deep/pipe")]);
  writeFileSync(at("huge.txt"), "");
  truncateSync(at("huge.txt"), 1024 ** 4);
  writeFileSync(at("closed.txt"), "nobody may read it");
  chmodSync(at("closed.txt"), 0);
  writeFileSync(at(`a${SCRIPT.replaceAll("/", "")}.html`), SCRIPT);
  writeFileSync(at("line\r\nset-cookie: x=y"), SCRIPT);
  writeFileSync(at("__proto__"), SCRIPT);
  server = new Server(place, { ...AUTH, sandbox: { volumes: [folder], maxPerPrincipal: 20 } });
  const { origin } = new URL(await server.url());
  eve = await connectHttp(`${origin}/mcp`, { authorization: `Bearer ${await token("eve")}` });
  root = await PageOperator.byToken(origin);
});

afterAll(() => server.stop());

async function made(): Promise<{ readonly name: string; readonly session_id: string }> {
  const { structuredContent } = await call(eve, "sandbox_create");
  const { sandboxes } = (await root.get("now")).json;
  return { name: sandboxes.at(-1).id, session_id: String(structuredContent?.["session_id"]) };
}

test("a start full of links, pipes, huge files and hostile names holds up nobody, and tells nothing from outside", async () => {
  const { name, session_id } = await made();
  const command = "rm -f huge.txt passwd secret near pipe a* line* __proto__; echo mine > pipe";
  expect((await call(eve, "shell_exec", { session_id, command })).isError).not.toBe(true);
  const { status, headers, text, json } = await root.get(`sandboxes/${name}/changes`);
  expect([status, headers["content-type"], headers["x-content-type-options"], headers["set-cookie"]]).toEqual([
    200,
    "application/json",
    "nosniff",
    undefined,
  ]);
  expect(text).not.toMatch(/root:x|stands outside/);
  expect(json.changes).toEqual(
    expect.arrayContaining([
      { path: "huge.txt", change: "removed", beforeMissing: "large" },
      { path: "pipe", change: "added", after: "mine\n" },
      { path: `a${SCRIPT.replaceAll("/", "")}.html`, change: "removed", before: SCRIPT },
      { path: "line\r\nset-cookie: x=y", change: "removed", before: SCRIPT },
      { path: "__proto__", change: "removed", before: SCRIPT },
    ]),
  );
  // Links and pipes are no files: what they lead to is never looked at.
  expect(json.changes.map(({ path }: { path: string }) => path)).not.toContain("secret");
  await call(eve, "sandbox_destroy", { session_id });
});

test("a neighbour in the folder who swaps files for links and pipes all the time gains nothing, and keeps nobody from starting", async () => {
  const neighbour = await made();
  await call(eve, "file_write", { session_id: neighbour.session_id, path: "swap.py", content: SWAP });
  await call(eve, "shell_exec", { session_id: neighbour.session_id, command: "python3 swap.py", background: true });
  for (let times = 0; times < 6; times += 1) {
    const { name, session_id } = await made();
    const answer = await call(eve, "shell_exec", { session_id, command: `echo ${times} > mine-${times}.txt` });
    expect(answer.isError).not.toBe(true);
    for (let looks = 0; looks < 3; looks += 1) {
      const { status, text, json } = await root.get(`sandboxes/${name}/changes`);
      expect([status, text.includes("root:x"), text.includes("PATH=")]).toEqual([200, false, false]);
      expect(json.changes).toContainEqual({ path: `mine-${times}.txt`, change: "added", after: `${times}\n` });
    }
    await call(eve, "sandbox_destroy", { session_id });
  }
  await call(eve, "sandbox_destroy", { session_id: neighbour.session_id });
});

test("files that are nearly the same, thousands of lines long, are told apart", async () => {
  const { session_id } = await made();
  const program =
    'for n in range(120):\n  open(f"same-{n}.txt", "w").write("\\n" * 65000 + f"{n:03}")\nopen("last.txt", "w").write("\\n" * 65530)';
  await call(eve, "code_run", { session_id, code: program });
  await call(eve, "sandbox_destroy", { session_id });
  const { name, session_id: next } = await made();
  await call(eve, "shell_exec", { session_id: next, command: "printf x >> same-7.txt; rm same-8.txt" });
  const { changes } = (await root.get(`sandboxes/${name}/changes`)).json;
  const lines = "\n".repeat(65_000);
  expect(changes).toContainEqual({
    path: "same-7.txt",
    change: "changed",
    before: `${lines}007`,
    after: `${lines}007x`,
  });
  expect(changes).toContainEqual({ path: "same-8.txt", change: "removed", before: `${lines}008` });
});
