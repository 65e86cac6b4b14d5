import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test } from "vitest";
import { call, type Called, connect, makePlace, readText, type TransportName } from "./sandbox-client.ts";

/** What every tool does, seen by a client of the official SDK; `settings` choose what the sandboxes run on. */
export function defineToolSuite(
  transports: readonly TransportName[],
  settings: () => Readonly<Record<string, unknown>>,
  open: (transport: TransportName) => Promise<Client> = (transport) =>
    connect(transport, makePlace(), { sandbox: settings() }),
  /** What code gets that prints a word first and then waits for ever. */
  timeoutSeconds = 5,
): void {
  describe.each(transports)("tools over %s", (transport) => {
    let client: Client;

    beforeAll(async () => {
      client = await open(transport);
    });

    test("[000-R2.3] [000-R2.5] [002-parse] code_run runs Python, and a variable is there in the next call", async () => {
      const first = await call(client, "code_run", { code: "x = 6\nprint('set')\nx * 7" });
      expect(first).toMatchObject({
        structuredContent: { status: "ok", language: "python", stdout: "set\n", stderr: "", value: "42" },
      });
      const second = await call(client, "code_run", {
        code: "print(x)",
        session_id: first.structuredContent?.["session_id"],
      });
      expect(second.structuredContent).toMatchObject({
        stdout: "6\n",
        session_id: first.structuredContent?.["session_id"],
        session_created: false,
      });
    });

    test("[000-R5.3] a session_id from one call leads the next one to the same sandbox", async () => {
      const made = await call(client, "sandbox_create");
      const session_id = String(made.structuredContent?.["session_id"]);
      await call(client, "file_write", { path: "here.txt", content: "mine", session_id });
      expect((await call(client, "file_read", { path: "here.txt", session_id })).structuredContent).toMatchObject({
        content: "mine",
      });
      const other = await call(client, "sandbox_create");
      const missing = await call(client, "file_read", {
        path: "here.txt",
        session_id: other.structuredContent?.["session_id"],
      });
      expect(missing.isError).toBe(true);
    });

    test("[002-format] the text is a summary line and then JSON, the same as in structuredContent", async () => {
      const result = await call(client, "file_write", { path: "a.txt", content: "hello" });
      const { head, json } = readText(result);
      expect(head).toBe("file_write ok: a.txt (5 bytes to a new file)");
      expect(json).toEqual(result.structuredContent);
    });

    test("[002-format] a failure has a hint line", async () => {
      const result = await call(client, "file_read", { path: "no/such/file" });
      const { head, hint } = readText(result);
      expect(result.isError).toBe(true);
      expect(result.structuredContent).toBeUndefined();
      expect(head).toMatch(/^file_read failed: no\/such\/file: /);
      expect(hint).toMatch(/\w/);
    });

    test("an exception is a result that points at the user's line", async () => {
      const result = await call(client, "code_run", { code: "a = 1\nb = 0\na / b" });
      const { head, json } = readText(result);
      expect(result.isError).toBe(true);
      expect(head).toBe("code_run failed: ZeroDivisionError: division by zero");
      expect(json["traceback"]).toContain("line 3");
      expect((await call(client, "code_run", { code: "a" })).structuredContent).toMatchObject({ value: "1" });
    });

    test("a time-out keeps the output so far and the sandbox", async () => {
      await call(client, "file_write", { path: "kept.txt", content: "kept" });
      const result = await call(client, "code_run", {
        code: "import time\nprint('before', flush=True)\ntime.sleep(600)",
        timeout_seconds: timeoutSeconds,
      });
      const { head, json } = readText(result);
      expect(head).toBe(`code_run failed: the code ran for ${timeoutSeconds} s and was stopped`);
      expect(json).toMatchObject({ status: "timeout", stdout: "before\n" });
      expect((await call(client, "file_read", { path: "kept.txt" })).structuredContent).toMatchObject({
        content: "kept",
      });
    });

    test("node keeps its state beside Python's, with top-level await", async () => {
      await call(client, "code_run", { language: "node", code: "const y = await Promise.resolve(20)" });
      const result = await call(client, "code_run", { language: "node", code: "y + 1" });
      expect(result.structuredContent).toMatchObject({ language: "node", value: "21" });
    });

    test("a plot comes back as image content", async (context) => {
      const hasPillow = await call(client, "shell_exec", { command: "python3 -c 'import PIL'" });
      if (hasPillow.isError === true) context.skip("the python template is not set up here: PIL is missing");
      const result = await call(client, "code_run", {
        code: "from PIL import Image\nImage.new('RGB', (2, 2), 'red')",
      });
      const image = result.content.find(({ type }) => type === "image");
      expect(image).toMatchObject({ mimeType: "image/png" });
      expect(
        Buffer.from(image?.data ?? "", "base64")
          .subarray(1, 4)
          .toString(),
      ).toBe("PNG");
    });

    test("shell_exec gives stdout, stderr and an honest exit code", async () => {
      const good = await call(client, "shell_exec", { command: "echo out; echo err >&2" });
      expect(good.structuredContent).toMatchObject({
        stdout: "out\n",
        stderr: "err\n",
        exit_code: 0,
        status: "exited",
      });
      const bad = await call(client, "shell_exec", { command: "exit 3" });
      expect(bad.isError).toBe(true);
      expect(readText(bad)).toMatchObject({ head: "shell_exec failed: exit code 3", json: { exit_code: 3 } });
    });

    test("a background process is read by cursor and killed", async () => {
      const started = await call(client, "shell_exec", { command: "echo one; sleep 600", background: true });
      const process_id = String(started.structuredContent?.["process_id"]);
      const read = await call(client, "shell_output", { process_id, wait_seconds: 10 });
      expect(read.structuredContent).toMatchObject({ text: "one\n", is_running: true });
      const killed = await call(client, "shell_kill", { process_id, signal: "SIGKILL" });
      expect(killed.structuredContent).toMatchObject({ is_running: false, signal: "SIGKILL" });
    });

    test("[002-fileread] [002-filewrite] [002-filelist] files are written, listed, searched and replaced in the workspace", async () => {
      const { session_id } = (await call(client, "sandbox_create")).structuredContent as { session_id: string };
      await call(client, "file_write", { path: "src/a.py", content: "x = 1\ny = 2\n", session_id });
      const read = await call(client, "file_read", {
        path: "/workspace/src/a.py",
        start_line: 2,
        end_line: 2,
        session_id,
      });
      expect(read.structuredContent).toMatchObject({ content: "y = 2\n" });
      const listed = await call(client, "file_list", { session_id });
      expect(listed.structuredContent).toMatchObject({ path: ".", entries: [{ path: "src", type: "directory" }] });
      const found = await call(client, "file_search", { pattern: "y\\s*=", session_id });
      expect(found.structuredContent).toMatchObject({ matches: [{ path: "src/a.py", line: 2, text: "y = 2" }] });
      await call(client, "file_replace", { path: "src/a.py", old_text: "y = 2", new_text: "y = 3", session_id });
      expect((await call(client, "file_read", { path: "src/a.py", session_id })).structuredContent).toMatchObject({
        content: "x = 1\ny = 3\n",
      });
    });

    test.each(["../../etc/passwd", "/etc/passwd", "/workspace/../etc/passwd", "/workspacex/a"])(
      "%s is outside the workspace and refused",
      async (path) => {
        for (const [name, args] of [
          ["file_read", { path }],
          ["file_write", { path, content: "x" }],
          ["file_list", { path }],
          ["file_search", { path, pattern: "root" }],
          ["file_replace", { path, old_text: "root", new_text: "x" }],
        ] as const) {
          const result = await call(client, name, args);
          expect(readText(result)).toMatchObject({ head: `${name} failed: ${path}: it is outside the workspace` });
        }
      },
    );

    test("output beyond the cap says so, parses, and is whole as a resource in pages", async () => {
      const result = await call(client, "code_run", { code: "for i in range(20000): print(f'line {i} \\u00e9')" });
      const { json } = readText(result);
      expect(result.content[0]?.text?.length).toBeLessThanOrEqual(25_000);
      expect(json["stdout"]).toContain("characters cut");
      let uri: string | undefined = String(json["stdout_uri"]);
      let whole = "";
      while (uri !== undefined) {
        const { contents } = await client.readResource({ uri });
        const [page] = contents as unknown as { text: string; _meta: { "owlclaw/page": { next?: string } } }[];
        whole += page!.text;
        uri = page!._meta["owlclaw/page"].next;
      }
      expect(whole.split("\n")[19_999]).toBe("line 19999 é");
      expect(whole.length).toBe(json["stdout_total_chars"]);
    });

    test("a file of the workspace is a resource for its owner", async () => {
      const written = await call(client, "file_write", { path: "data dir/ä.bin", content: "AAEC", encoding: "base64" });
      const { session_id } = written.structuredContent as { session_id: string };
      const { contents } = await client.readResource({ uri: `sandbox://${session_id}/data%20dir/%C3%A4.bin` });
      expect(contents).toMatchObject([{ blob: "AAEC", mimeType: "application/octet-stream" }]);
      await expect(client.readResource({ uri: `sandbox://${"x".repeat(32)}/a` })).rejects.toThrow(
        "there is no sandbox",
      );
      await expect(client.readResource({ uri: `sandbox://${session_id}//etc/passwd` })).rejects.toThrow(
        "outside the workspace",
      );
    });

    test("output streams as progress to a client that asked", async () => {
      const messages: string[] = [];
      await client.callTool(
        { name: "shell_exec", arguments: { command: "for i in 1 2 3; do echo tick $i; sleep 0.4; done" } },
        { onprogress: ({ message }) => messages.push(message ?? "") },
      );
      expect(messages.join("")).toContain("tick 1");
    });

    test("[002-create] [002-destroy] sandbox_create, sandbox_list and sandbox_destroy", async () => {
      const made = await call(client, "sandbox_create", {
        flavor: "medium",
        template: "node",
        labels: { job: "7" },
        env: { GREETING: "hi" },
      });
      const { session_id } = made.structuredContent as { session_id: string };
      expect(session_id).toMatch(/^[\w-]{32}$/);
      expect(made.structuredContent).toMatchObject({ cpus: 2, memory_gib: 2, session_created: true });
      expect(
        (await call(client, "shell_exec", { command: "echo $GREETING", session_id })).structuredContent,
      ).toMatchObject({ stdout: "hi\n" });
      const listed = await call(client, "sandbox_list", { session_id });
      expect(listed.structuredContent?.["sandboxes"]).toMatchObject([
        { session_id, template: "node", flavor: "medium", state: "ready", labels: { job: "7" } },
      ]);
      expect((await call(client, "sandbox_destroy", { session_id })).structuredContent).toEqual({
        session_id,
        destroyed: true,
      });
      const gone: Called = await call(client, "code_run", { code: "1", session_id });
      expect(gone.isError).toBe(true);
      expect(gone.content[0]?.text).toBe(
        "code_run failed: there is no sandbox with this session_id\nhint: call sandbox_list for yours, sandbox_create for a new one, or leave session_id out",
      );
    });

    test("everything in the sandbox may kill itself: it runs again on the same files, and the result says so", async () => {
      await call(client, "file_write", { path: "survivor.txt", content: "alive" });
      const killed = await call(client, "shell_exec", { command: "kill -9 -1" });
      expect(readText(killed).json).toMatchObject({ sandbox_restarted: true });
      const after = await call(client, "file_read", { path: "survivor.txt" });
      expect(after.structuredContent).toMatchObject({ content: "alive", session_created: false });
    });
  });
}
