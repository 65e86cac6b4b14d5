import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";

const UNIT = resolve(import.meta.dirname, "../../deploy/systemd/owlclaw.service");

test("the systemd unit is one that systemd understands, and is closed tightly", () => {
  const folder = temporaryFolder({ "owlclaw.service": readFileSync(UNIT, "utf8") });
  const file = join(folder, "owlclaw.service");
  const verified = spawnSync("systemd-analyze", ["verify", file], { encoding: "utf8" });
  expect(verified.stderr).toBe("");
  expect(verified.status).toBe(0);
  const security = ["security", "--offline=true", "--threshold=50", file];
  expect(spawnSync("systemd-analyze", security, { encoding: "utf8" })).toMatchObject({ status: 0 });
});
