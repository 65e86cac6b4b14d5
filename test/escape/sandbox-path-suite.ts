import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test } from "vitest";
import { type Inside, openInside, textOf } from "./sandbox-lab.ts";

const OUTSIDE = [
  "../etc/passwd",
  "a/../../etc/passwd",
  "/etc/passwd",
  "/workspace/../etc/passwd",
  "//etc//passwd",
  "/proc/self/root/etc/passwd",
  "/proc/self/environ",
  "/proc/self/cwd/../etc/passwd",
  "/workspace2/secret.txt",
  "../workspace2/secret.txt",
  "/workspace-other/x",
  "/tmp/outside.txt",
  "to-file",
  "to-dir/passwd",
  "chain",
  "loop",
  "to-new",
  "secret.txt\0",
  "\0/etc/passwd",
  "/etc/passwd\0/../../workspace/a",
];
/** Of those above: what is there for every program inside, so that nothing but the tools' own check refuses it. */
const READABLE = OUTSIDE.filter((path) => !/^(\/workspace-other|loop$|to-new$)|\0/.test(path));
const fileCalls = (path: string): [string, Record<string, unknown>][] => [
  ["file_read", { path }],
  ["file_search", { path, pattern: "root|canary" }],
  ["file_replace", { path, old_text: "root", new_text: "x" }],
  ["file_write", { path, content: "x" }],
];

/** Every path that leads out of the workspace, in a sandbox that is there. The server has a volume at /workspace2 with a `secret.txt`. */
export function defineRefusedPaths(client: () => Client, inside: () => Inside): void {
  beforeAll(async () => {
    await inside().sh(`mkdir a; ln -s /etc/passwd to-file; ln -s /etc to-dir; ln -s to-dir c1; ln -s c1/../etc/passwd c2
    ln -s c2 chain; ln -s loop loop; ln -s /tmp/new to-new; ln -s /workspace2 to-volume; echo root: > /tmp/outside.txt`);
  });

  test.each(OUTSIDE)("%j is refused by every one of them", async (path) => {
    for (const [name, args] of fileCalls(path)) {
      const answer = await inside().call(name, args);
      expect(answer.isError, `${name}: ${textOf(answer)}`).toBe(true);
      expect(textOf(answer)).not.toMatch(/root:|canary-/);
    }
    await expect(
      client().readResource({ uri: `sandbox://${inside().id}/${encodeURIComponent(path)}` }),
    ).rejects.toThrow(/outside the workspace|NUL|lead in a circle/);
    expect(await inside().sh("cat /tmp/outside.txt; ls /tmp/new")).toBe("root:\n");
  });
}

/** The proof that each path would be read without the check; after those above. */
export function defineReadablePaths(inside: () => Inside): void {
  test.each(READABLE)("%j would be read without their check, as by a program inside", async (path) => {
    expect(await inside().sh(`cat ${path} | wc -c`)).not.toBe("0\n");
  });
}

/** All of it, with folders and races. */
export function definePathSuite(client: () => Client, races: number): void {
  describe("paths of the file tools", () => {
    let inside: Inside;
    beforeAll(async () => {
      inside = await openInside(client());
    });
    defineRefusedPaths(client, () => inside);

    defineReadablePaths(() => inside);

    // Each check is in place, in Python, and is not enough.
    test.each([
      ["before it is decoded", "%2e%2e/etc/passwd", "'..' not in path", "open(unquote(path)).fileno()"],
      ["before it is decoded", "..%2fetc%2fpasswd", "'/' not in path", "open(unquote(path)).fileno()"],
      ["before it is decoded", "%2Fetc%2Fpasswd", "not isabs(path)", "open(unquote(path)).fileno()"],
      ["as a text", "/workspace2/secret.txt", "path.startswith('/workspace')", "open(path).fileno()"],
      ["past its end", "/etc/passwd\0/../../workspace/a", "normpath(path).startswith('/workspace/')", "c_open(path)"],
    ])("checked %s, %j would be read", async (_how, path, check, open) => {
      const said = await inside.python(`
import ctypes
from os.path import isabs, normpath
from urllib.parse import unquote
def c_open(name): return ctypes.CDLL(None).open(name.encode(), 0)
path = ${JSON.stringify(path)}
print(${check}, ${open} >= 0)
`);
      expect(said).toBe("True True\n");
    });

    test("a path that leads through links inside is taken by every one of them", async () => {
      await inside.sh("mkdir in; echo root > in/file; ln -s in to-in; ln -s /workspace/to-in/../in/file to-in-file");
      for (const path of ["in/../to-in-file", "/workspace/to-in/file"]) {
        for (const [name, args] of fileCalls(path)) {
          const answer = await inside.call(name, args);
          expect(answer.isError, `${name} ${path}: ${textOf(answer)}`).toBeUndefined();
          if (name === "file_write") await inside.sh("echo root > in/file");
        }
      }
      expect((await inside.call("file_list", { path: "to-in" })).isError).toBeUndefined();
    });

    test.each(["..", "/", "/etc", "to-dir", "/workspace2", "to-volume", "/proc/self/cwd/.."])(
      "the folder %j is neither listed nor searched",
      async (path) => {
        for (const [name, args] of [
          ["file_list", { path }],
          ["file_search", { path, pattern: "root|canary" }],
        ] as const) {
          const answer = await inside.call(name, { ...args });
          expect(textOf(answer), `tool ${name}`).toContain("outside the workspace");
        }
      },
    );

    test.each(["%2e%2e/etc/passwd", "..%2fetc%2fpasswd", "%2Fetc%2Fpasswd", "%00"])(
      "%j is a name like any other, and nothing is decoded",
      async (path) => {
        expect((await inside.call("file_read", { path })).isError).toBe(true);
        await inside.call("file_write", { path, content: "literal" });
        expect(await inside.sh(`cat -- '/workspace/${path}'`)).toBe("literal");
      },
    );

    test("a search or a list from above does not follow links out", async () => {
      const found = textOf(await inside.call("file_search", { path: ".", pattern: "root:|canary-" }));
      expect(found).not.toMatch(/root:x|canary-/);
      const listed = textOf(await inside.call("file_list", { path: ".", recursive: true }));
      expect(listed).not.toMatch(/to-dir\/passwd|to-volume\/secret/);
    });

    test("a folder that is exchanged for a link all the time leads nowhere else", async () => {
      const racing = await openInside(client());
      await racing.sh(
        "mkdir a /tmp/target; ln -s /tmp/target l; echo mine > a/passwd; echo theirs | tee /tmp/target/passwd > /tmp/target/only-theirs",
      );
      const exchange = `import ctypes
libc = ctypes.CDLL(None)
while True: libc.renameat2(-100, b"a", -100, b"l", 2)`;
      await racing.call("shell_exec", { background: true, command: `python3 -c '${exchange}'` });
      const seen = new Set<unknown>();
      const found: string[] = [];
      for (let round = 0; round < races; round += 1) {
        const read = await racing.call("file_read", { path: "a/passwd" });
        seen.add(read.structuredContent?.["content"]);
        await racing.call("file_write", { path: `a/new-${round}`, content: "x" });
        await racing.call("file_replace", { path: "a/passwd", old_text: "theirs", new_text: "changed" });
        for (const name of ["file_list", "file_search"]) {
          const answer = await racing.call(name, { path: "a", ...(name === "file_search" && { pattern: "theirs" }) });
          found.push(textOf(answer));
        }
      }
      expect(found.filter((text) => /only-theirs|"text":"theirs"/.test(text))).toEqual([]);
      expect(seen).toContain("mine\n");
      expect(seen).not.toContain("theirs\n");
      const careless = `seen = set()
while len(seen) < 2: seen.add(open("a/passwd").read().strip())
print(sorted(seen))`;
      expect(await racing.python(careless)).toBe("['mine', 'theirs']\n");
      expect(await racing.sh("ls /tmp/target")).toBe("only-theirs\npasswd\n");
      // Its loop would take the processor from every test that follows.
      expect((await racing.call("sandbox_destroy")).isError).toBeUndefined();
    });
  });
}
