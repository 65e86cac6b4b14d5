import { chmodSync, existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { removeTree } from "../../../../src/sandbox/runtimes/host-files.ts";
import { asOrdinaryUser } from "../../../setup/ordinary-user.ts";

test("a tree without rights goes, and what its links lead to stays as it was", async () => {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-remove-"));
  chmodSync(folder, 0o777);
  const outside = join(folder, "outside");
  const tree = join(folder, "tree");
  await asOrdinaryUser(async () => {
    mkdirSync(outside, { mode: 0o755 });
    writeFileSync(join(outside, "kept"), "");
    chmodSync(outside, 0o555);
    mkdirSync(join(tree, "a", "b"), { recursive: true });
    symlinkSync(outside, join(tree, "a", "b", "to-folder"));
    symlinkSync(join(outside, "kept"), join(tree, "a", "to-file"));
    chmodSync(join(tree, "a", "b"), 0);
    chmodSync(join(tree, "a"), 0);
    await removeTree(tree);
  });
  expect(existsSync(tree)).toBe(false);
  expect(existsSync(join(outside, "kept"))).toBe(true);
});

test("what is not there is no failure", async () => {
  await expect(removeTree(join(tmpdir(), "owlclaw-never-was"))).resolves.toBeUndefined();
});
