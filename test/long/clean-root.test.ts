import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
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
} from "node:fs";
import { arch, homedir, tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { freePort } from "../services/free-port.ts";
import { Terminal } from "../tooling/terminal.ts";
import { ReadmeWalk } from "../tooling/walk-readme.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const REPOSITORY = "https://github.com/owlclaw/owlclaw";
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";

const undo: (() => Promise<void> | void)[] = [];

afterAll(async () => {
  for (const step of undo.toReversed()) await step();
});

/** A Debian with git and certificates, Node and npm, what the README itself types, and nothing else. */
function makeDebian(): string {
  const debian = mkdtempSync(join(tmpdir(), "owlclaw-debian-"));
  undo.push(() => rmSync(debian, { recursive: true, force: true }));
  const packages = "--include=ca-certificates,git,libatomic1,curl,openssl";
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
  execFileSync("git", ["clone", "--quiet", "--bare", "--no-hardlinks", ROOT, inside("srv/owlclaw.git")]);
  return debian;
}

/** Goes into that Debian, and stays there. @returns the process whose namespaces a terminal enters. */
async function enter(debian: string): Promise<number> {
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
    "echo inside",
    "exec sleep infinity",
  ].join(" && ");
  const holder: ChildProcess = spawn("unshare", ["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", steps], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  undo.push(async () => {
    holder.kill("SIGKILL");
    if (holder.exitCode === null && holder.signalCode === null) await once(holder, "exit");
  });
  if (holder.stdout === null) throw new Error("there is nothing to read from");
  await once(holder.stdout, "data");
  return Number(readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, "utf8"));
}

test("in a clean Debian, every command of the README works, and what it prints is what the README says", async (context) => {
  if (process.getuid?.() !== 0) context.skip("only root can make a Debian to go into");
  if (!existsSync("/usr/bin/mmdebstrap")) context.skip("mmdebstrap is not there");
  const debian = makeDebian();
  const pid = await enter(debian);
  const port = await freePort();
  const env = {
    PATH: "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    HOME: "/root",
    LANG: "C.UTF-8",
    NODE_EXTRA_CA_CERTS: CERTIFICATES,
    npm_config_cafile: CERTIFICATES,
    MCP_SERVER_PORT: String(port),
    GIT_CONFIG_COUNT: "1",
    GIT_CONFIG_KEY_0: "url./srv/owlclaw.git.insteadOf",
    GIT_CONFIG_VALUE_0: REPOSITORY,
  };
  const shell = (folder: string): string => `nsenter --target ${pid} --mount --pid env -C ${folder} sh`;
  const walk = new ReadmeWalk({
    markdown: readFileSync(join(ROOT, "README.md"), "utf8"),
    folder: join(debian, "root"),
    port,
    open: (inClone) => Terminal.open({ cwd: "/", env, shell: shell(inClone ? "/root/owlclaw" : "/root") }),
  });
  undo.push(() => walk.leave());
  const said: string[] = [];
  for await (const { line, shown, status, screen, before } of walk.commands()) {
    expect({ line, status, screen }).toEqual({ line, status: 0, screen: expect.stringMatching(shown) });
    if (before !== undefined) said.push(before);
  }
  expect(said[0]).toMatch(/installing npm packages[\s\S]*building[\s\S]*installing system packages/);
});
