import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, expect, test, vi } from "vitest";
import { call, connect, makePlace, readText } from "./sandbox-client.ts";

let client: Client;

beforeAll(async () => {
  client = await connect("stdio", makePlace());
});

interface PageContents {
  readonly text: string;
  readonly _meta: { readonly "owlclaw/page": { readonly size_bytes: number; readonly next?: string } };
}

async function readPage(uri: string): Promise<PageContents> {
  const { contents } = await client.readResource({ uri });
  const [page] = contents as unknown as PageContents[];
  return page!;
}

test("what a thread prints after its call comes with the next result", async () => {
  const code = [
    "import os, threading, time",
    "def later():\n  while not os.path.exists('go'): time.sleep(0.01)\n  print('from the thread')\n  open('printed', 'w')",
    "threading.Thread(target=later).start()",
  ].join("\n");
  const first = await call(client, "code_run", { code });
  expect(first.structuredContent).not.toHaveProperty("earlier_output");
  await call(client, "file_write", { path: "go", content: "" });
  await vi.waitFor(
    async () => expect((await call(client, "file_read", { path: "printed" })).isError).not.toBe(true),
    20_000,
  );
  const next = await call(client, "code_run", { code: "print('now')" });
  expect(next.structuredContent).toMatchObject({ stdout: "now\n", earlier_output: "from the thread\n" });
});

test("the HTML form of a value has an address that can be read", async () => {
  const { content } = await call(client, "code_run", {
    code: "class T:\n  def _repr_html_(self): return '<b>t</b>'\nT()",
  });
  const block = content.find(({ type }) => type === "resource") as unknown as { resource: { uri: string } } | undefined;
  expect((await readPage(block?.resource.uri ?? "")).text).toBe("<b>t</b>");
});

test("a text is read by bytes without losing a character", async () => {
  const content = "aé€😀z".repeat(3);
  await call(client, "file_write", { path: "t.txt", content });
  let text = "";
  for (let offset: unknown = 0; offset !== undefined;) {
    const part = await call(client, "file_read", { path: "t.txt", offset, length: 3 });
    text += String(part.structuredContent?.["content"]);
    offset = part.structuredContent?.["next_offset"];
  }
  expect(text).toBe(content);
  const wrong = await call(client, "file_read", { path: "t.txt", start_line: 3, end_line: 2 });
  expect(readText(wrong).head).toBe("file_read failed: end_line (2) is before start_line (3): exchange them");
});

test("hidden files are searched on request, and a search without a match says so", async () => {
  await call(client, "file_write", { path: ".env", content: "needle-in-a-dotfile" });
  const visible = await call(client, "file_search", { pattern: "needle-in" });
  expect(readText(visible).head).toMatch(/^file_search ok: 0 matches in \d+ files?; .*include_hidden: true$/);
  const all = await call(client, "file_search", { pattern: "needle-in", include_hidden: true });
  expect(all.structuredContent).toMatchObject({ matches: [{ path: ".env", line: 1 }] });
});

test("an error after a restart does not claim that variables are there", async () => {
  await call(client, "code_run", { code: "kept = 1" });
  const abort = new AbortController();
  const code = "import time\nprint('running', flush=True)\ntime.sleep(600)";
  const cancelled = client.callTool(
    { name: "code_run", arguments: { code } },
    { signal: abort.signal, onprogress: () => abort.abort() },
  );
  await expect(cancelled).rejects.toThrow(/abort/i);
  const after = readText(await call(client, "code_run", { code: "kept" }));
  expect(after).toMatchObject({ json: { interpreter_restarted: true }, head: expect.stringContaining("NameError") });
  expect(after.hint).toMatch(/set earlier variables again/);
  const next = readText(await call(client, "code_run", { code: "kept" }));
  expect(next.hint).toMatch(/what was set before it is still there/);
});

test("an output beyond what is kept says how much is kept, and its last page says so too", async () => {
  const code = "line = 'x' * 1023 + '\\n'\nfor _ in range(66_000): print(line, end='')";
  const { structuredContent = {} } = await call(client, "code_run", { code });
  const uri = String(structuredContent["stdout_uri"]);
  const kept = Number(structuredContent["stdout_kept_bytes"]);
  expect(kept).toBeLessThan(Number(structuredContent["stdout_total_chars"]));
  const last = await readPage(`${uri}?offset=${kept}&length=1000`);
  expect(last.text).toMatch(/the rest was not kept/);
  expect(last._meta["owlclaw/page"].next).toBeUndefined();
});

test("JavaScript keeps what const and let mean, and its state", async () => {
  const run = (code: string) => call(client, "code_run", { language: "node", code });
  expect(readText(await run("const a = 1; a = 2")).head).toContain("Assignment to constant variable");
  expect((await run("const a = 2, f = () => a; f()")).structuredContent).toMatchObject({ value: "2" });
  const early = readText(await run("const b = c; const c = 1"));
  expect(early.head).toContain("Cannot access 'c' before initialization");
  expect(early.json["traceback"]).toMatch(/<cell \d+>:1:11/);
  await call(client, "file_write", { path: "d.json", content: '{"n":5}' });
  const imported = await run("import d from './d.json' with { type: 'json' }; d.n");
  expect(imported.structuredContent).toMatchObject({ value: "5" });
});
