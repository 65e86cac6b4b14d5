import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const SCRIPT = resolve(import.meta.dirname, "../../scripts/setup/install-packages.sh");
const UNITS = "etc/systemd/system/multi-user.target.wants";

/** A package with a service: it is enabled for both kinds of init, and asks whether it may start. */
const APT_GET = `#!/bin/sh
ln -s /lib/systemd/system/new.service "$INSTALL_ROOT/${UNITS}/new.service"
ln -s ../init.d/new "$INSTALL_ROOT/etc/rc2.d/S01new"
"$INSTALL_ROOT/usr/sbin/policy-rc.d" new start; echo "start: $?"
`;

function machine(): string {
  const folder = mkdtempSync(join(tmpdir(), "owlclaw-install-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  for (const path of ["bin", "usr/sbin", UNITS, "etc/rc2.d"]) mkdirSync(join(folder, path), { recursive: true });
  symlinkSync("/lib/systemd/system/old.service", join(folder, UNITS, "old.service"));
  symlinkSync("../init.d/old", join(folder, "etc/rc2.d/S01old"));
  writeFileSync(join(folder, "bin/apt-get"), APT_GET, { mode: 0o755 });
  return folder;
}

function install(folder: string): { status: number | null; stdout: string } {
  const env = { PATH: `${join(folder, "bin")}:${process.env["PATH"]}`, INSTALL_ROOT: folder };
  return spawnSync("bash", [SCRIPT, "package"], { env, encoding: "utf8" });
}

test("a package's service is neither started nor enabled, and services that were enabled stay so", () => {
  const folder = machine();
  expect(install(folder)).toMatchObject({ status: 0, stdout: "start: 101\n" });
  expect(readdirSync(join(folder, UNITS))).toEqual(["old.service"]);
  expect(readdirSync(join(folder, "etc/rc2.d"))).toEqual(["K01new", "S01old"]);
  expect(existsSync(join(folder, "usr/sbin/policy-rc.d"))).toBe(false);
});

test("a policy of the machine's own decides about starts, and stays", () => {
  const folder = machine();
  writeFileSync(join(folder, "usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 104\n", { mode: 0o755 });
  expect(install(folder)).toMatchObject({ stdout: "start: 104\n" });
  expect(existsSync(join(folder, "usr/sbin/policy-rc.d"))).toBe(true);
  expect(readdirSync(join(folder, UNITS))).toEqual(["old.service"]);
});

test("a failure of apt is the script's, and services stay as they were all the same", () => {
  const folder = machine();
  writeFileSync(join(folder, "bin/apt-get"), `${APT_GET}exit 100\n`, { mode: 0o755 });
  expect(install(folder).status).not.toBe(0);
  expect(readdirSync(join(folder, UNITS))).toEqual(["old.service"]);
});
