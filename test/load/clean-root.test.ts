import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { arch, homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const ROOT = resolve(import.meta.dirname, "../..");
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";
const canRun = process.getuid?.() === 0 && existsSync("/usr/bin/mmdebstrap");

/** A Debian with git and certificates, Node and npm, and nothing else: whatever else is needed must come by itself. */
describe.skipIf(!canRun)("in a clean Debian", () => {
  const debian = mkdtempSync(join(tmpdir(), "owlclaw-debian-"));

  beforeAll(() => {
    const packages = "--include=ca-certificates,git,libatomic1";
    execFileSync("mmdebstrap", ["--quiet", "--variant=minbase", packages, "bookworm", debian], { stdio: "ignore" });
    const inside = (path: string): string => join(debian, path);
    copyFileSync(join(ROOT, `test/nodes/node_modules/node-20-linux-${arch()}/bin/node`), inside("usr/local/bin/node"));
    chmodSync(inside("usr/local/bin/node"), 0o755);
    const npm = realpathSync(execFileSync("which", ["npm"], { encoding: "utf8" }).trim());
    cpSync(dirname(dirname(npm)), inside("usr/local/lib/node_modules/npm"), { recursive: true });
    symlinkSync("../lib/node_modules/npm/bin/npm-cli.js", inside("usr/local/bin/npm"));
    // How this machine reaches its packages.
    for (const file of [CERTIFICATES, "/etc/resolv.conf", "/etc/hosts"]) copyFileSync(file, inside(file));
    if (existsSync(join(homedir(), ".npmrc"))) copyFileSync(join(homedir(), ".npmrc"), inside("root/.npmrc"));
    execFileSync("git", ["clone", "--quiet", "--no-hardlinks", ROOT, inside("root/owlclaw")]);
  });

  afterAll(() => rmSync(debian, { recursive: true, force: true }));

  function run(command: string): { status: number | null; stdout: string; stderr: string } {
    const script = `cd /root/owlclaw && export HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      NODE_EXTRA_CA_CERTS=${CERTIFICATES} npm_config_cafile=${CERTIFICATES} && ${command}`;
    writeFileSync(join(debian, "root/run.sh"), script);
    // A plain chroot may make no user namespaces. Mounts are of a namespace of their own, and go with it.
    const steps = [
      "mount --make-rprivate /",
      `mount --bind ${debian} ${debian}`,
      `mount -t proc proc ${debian}/proc`,
      `mount --rbind /sys ${debian}/sys`,
      `mount --rbind /dev ${debian}/dev`,
      `cd ${debian}`,
      "mkdir -p old",
      "pivot_root . old",
      "umount -l /old",
      "exec sh /root/run.sh",
    ].join(" && ");
    const args = ["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", steps];
    return spawnSync("unshare", args, { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
  }

  test("the commands of the README that try a tool work from a clean clone, and what they print is what the README says", () => {
    const readme = readFileSync(join(ROOT, "README.md"), "utf8");
    const lines = [...readme.matchAll(/^\$ (\.\/owlclaw mcp-server tools call .+)$/gm)].map(([, line = ""]) => line);
    expect(lines.length).toBeGreaterThanOrEqual(2);
    const first = run(lines[0] ?? "");
    expect(first).toMatchObject({ status: 0, stdout: expect.stringContaining("value array([ 0, 14, 28])") });
    expect(first.stderr).toMatch(/installing npm packages[\s\S]*building[\s\S]*installing system packages/);
    expect(run(lines[1] ?? "")).toMatchObject({ status: 0, stdout: "43\n" });
    expect(run("./owlclaw mcp-server doctor --json").status).toBe(0);
  });
});
