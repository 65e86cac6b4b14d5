import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { run } from "../../../src/cli/run.ts";
import { fakeTerminal } from "./fake-terminal.ts";

async function script(shell: string): Promise<string> {
  const terminal = fakeTerminal();
  expect(await run(["completion", shell], terminal)).toBe(0);
  return terminal.written.out;
}

/** What bash offers for these words; the last one is being typed. */
async function bashOffers(...words: readonly string[]): Promise<string[]> {
  const quoted = words.map((word) => `'${word}'`).join(" ");
  const code = `${await script("bash")}\nCOMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}; _owlclaw; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout, status, stderr } = spawnSync("bash", ["--norc", "-c", code], { encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout.trim().split("\n");
}

describe("in bash", () => {
  test("commands are completed at each level", async () => {
    expect(await bashOffers("owlclaw", "")).toEqual([
      "mcp-server",
      "install",
      "uninstall",
      "completion",
      "--version",
      "--help",
    ]);
    expect(await bashOffers("owlclaw", "mcp-server", "co")).toEqual(["config"]);
    expect(await bashOffers("owlclaw", "mcp-server", "config", "")).toEqual(
      expect.arrayContaining(["validate", "show", "schema", "init"]),
    );
  });

  test("flags are completed, also behind other flags", async () => {
    expect(await bashOffers("owlclaw", "mcp-server", "start", "--port", "1", "--tr")).toEqual(["--transport"]);
  });

  test("values of a flag are completed where they are known", async () => {
    expect(await bashOffers("owlclaw", "mcp-server", "start", "--transport", "")).toEqual(["stdio", "http"]);
    expect(await bashOffers("owlclaw", "completion", "z")).toEqual(["zsh"]);
  });

  test("files are offered where a value is open", async () => {
    expect(await bashOffers("owlclaw", "mcp-server", "start", "--config", "package.j")).toEqual(["package.json"]);
  });
});

test("every command and flag is in each script", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const text = await script(shell);
    for (const word of ["validate", "resources", "token", "allow-unauthenticated", "cors-origin", "expires"])
      expect(text).toContain(word);
  }
});

test("another shell is refused with the choices", async () => {
  const terminal = fakeTerminal();
  expect(await run(["completion", "tcsh"], terminal)).toBe(2);
  expect(terminal.written.err).toContain("bash, zsh, fish");
});
