import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { run } from "../../src/cli/run.ts";
import { fakeTerminal } from "../unit/cli/fake-terminal.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";

test.each(["zsh", "fish"])("%s accepts the completion script", async (shell) => {
  const terminal = fakeTerminal();
  expect(await run(["completion", shell], terminal)).toBe(0);
  const file = join(temporaryFolder({}), `completion.${shell}`);
  writeFileSync(file, terminal.written.out);
  const { status, stderr } = spawnSync(shell, ["-n", file], { encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
});
