import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { buildProgram } from "../../../src/cli/program.ts";
import { run } from "../../../src/cli/run.ts";
import { fakeTerminal } from "./fake-terminal.ts";

async function cli(...argv: readonly string[]): Promise<{ code: number; out: string; err: string }> {
  const terminal = fakeTerminal();
  const code = await run(argv, terminal);
  return { code, ...terminal.written };
}

function commandLines(command: Command, path: readonly string[] = []): string[][] {
  return [[...path], ...command.commands.flatMap((child) => commandLines(child, [...path, child.name()]))];
}

const ALL_COMMANDS = commandLines(buildProgram({ terminal: fakeTerminal(), finish: () => {} }));

describe("[004-R12.8] [004-R12.9] every command", () => {
  test.each(ALL_COMMANDS.map((path) => [path.join(" "), path] as const))(
    "owlclaw %s has --help and --version",
    async (_, path) => {
      const help = await cli(...path, "--help");
      expect(help).toMatchObject({
        code: 0,
        err: "",
        out: expect.stringContaining(`Usage: ${["owlclaw", ...path].join(" ")}`),
      });
      expect(await cli(...path, "--version")).toEqual({
        code: 0,
        err: "",
        out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
      });
    },
  );

  test("a command that does something shows an example", async () => {
    const leaves = ALL_COMMANDS.filter(
      (path) =>
        !ALL_COMMANDS.some((other) => other.length > path.length && path.every((word, at) => word === other[at])),
    );
    for (const path of leaves) expect((await cli(...path, "--help")).out).toContain("Examples:\n  $ ");
  });

  test("help fits the terminal", async () => {
    const terminal = fakeTerminal({ width: 60 });
    await run(["mcp-server", "start", "--help"], terminal);
    const options = terminal.written.out.split("Examples:")[0] ?? "";
    expect(Math.max(...options.split("\n").map((line) => line.length))).toBeLessThanOrEqual(60);
  });
});

describe("a wrong command line", () => {
  test.each([
    [["mcp-sever"], "mcp-server"],
    [["mcp-server", "strat"], "start"],
    [["mcp-server", "config", "validte"], "validate"],
    [["mcp-server", "start", "--prot", "1"], "--port"],
    [["mcp-server", "tools", "lst"], "list"],
  ])("%j suggests %s and exits with 2", async (argv, suggestion) => {
    expect(await cli(...argv)).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringMatching(new RegExp(`\\(Did you mean .*${suggestion}`)),
    });
  });

  test.each([
    ["an argument too many", ["mcp-server", "config", "schema", "x"]],
    ["a missing argument", ["mcp-server", "tools", "call"]],
    ["a missing required flag", ["mcp-server", "token", "create"]],
    ["--set without a value", ["mcp-server", "config", "show", "--set", "http.port"]],
    ["arguments that are no JSON", ["mcp-server", "tools", "call", "x", "{"]],
    ["arguments that are no object", ["mcp-server", "tools", "call", "x", "[1]"]],
    ["no command at all", []],
  ])("%s exits with 2 and leaves stdout alone", async (_, argv) => {
    const { code, out, err } = await cli(...argv);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).not.toBe("");
    expect(err).not.toContain("    at ");
  });
});

describe("token create", () => {
  test.each(["0s", "1", "h", "1y", "-1h", "1e9h", ""])("refuses --expires %j", async (time) => {
    const secret = `auth.jwt.secret=${"x".repeat(32)}`;
    const argv = ["mcp-server", "token", "create", "--sub", "ada", "--set", secret];
    expect(await cli(...argv, `--expires=${time}`)).toMatchObject({
      code: 2,
      out: "",
      err: expect.stringContaining("--expires"),
    });
    expect(await cli(...argv, "--expires=1s")).toMatchObject({ code: 0, err: "" });
  });
});
