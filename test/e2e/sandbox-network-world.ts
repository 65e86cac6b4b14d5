import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { BIN, type Place, type Settings, writeConfig } from "./sandbox-client.ts";

/** Two hosts of the internet, as far as the server can tell. Nothing outside the test's own network namespaces has them. */
const ADDRESSES = { server: "44.0.0.1", good: "44.0.0.2", bad: "44.0.0.3" };

/**
 * The server in a network of its own with a cable to another one, where a plain web server stands in for both hosts.
 * Arguments: the hosts file, the site's folder, what else to do, and the program to become. The web server ends with it.
 */
const WORLD = `
set -eu
hosts=$1 site=$2 more=$3
shift 3
mount --bind "$hosts" /etc/hosts
ip link set lo up
setpriv --pdeathsig KILL unshare --net -- bash --norc -c '
  until ip link show cable1; do sleep 0.01; done
  ip addr add ${ADDRESSES.good}/24 dev cable1
  ip addr add ${ADDRESSES.bad}/24 dev cable1
  ip link set cable1 up
  exec python3 -m http.server --directory "$0" 80' "$site" > /dev/null 2>&1 < /dev/null &
far=$!
until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
ip link add cable0 type veth peer name cable1 netns $far
ip addr add ${ADDRESSES.server}/24 dev cable0
ip link set cable0 up
until (exec 3<> /dev/tcp/${ADDRESSES.good}/80) 2> /dev/null; do sleep 0.02; done
eval "$more"
exec "$@"
`;

/** The same site on the server's own loopback, and where clouds have their metadata. */
const NEAR = `
ip addr add 169.254.169.254/32 dev lo
setpriv --pdeathsig KILL python3 -m http.server --directory "$site" 80 > /dev/null 2>&1 < /dev/null &
until (exec 3<> /dev/tcp/127.0.0.1/80) 2> /dev/null; do sleep 0.02; done
`;

const ALONE = `set -eu; ip link set lo up; exec "$@"`;

const WHEEL = "tiny-1.0-py3-none-any.whl";
const MAKE_WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("tiny.py", "answer = 42")
    wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
    wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\\ntiny-1.0.dist-info/METADATA,,\\ntiny-1.0.dist-info/WHEEL,,\\ntiny-1.0.dist-info/RECORD,,\\n")
`;

/** A page, a git repository, an index for pip and a registry for npm, all as plain files. */
function writeSite(folder: string): void {
  const site = join(folder, "site");
  const inSite = (path: string): string => join(site, path);
  for (const path of ["simple/tiny", "package"]) mkdirSync(inSite(path), { recursive: true });
  writeFileSync(inSite("hello.txt"), "hello from outside");
  const git = (cwd: string, ...args: string[]): unknown =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.org", ...args], { cwd, stdio: "ignore" });
  const work = join(folder, "work");
  mkdirSync(work);
  git(work, "init");
  writeFileSync(join(work, "file"), "from the repository");
  git(work, "add", "file");
  git(work, "commit", "-m", "first");
  git(folder, "clone", "--bare", work, inSite("repo.git"));
  git(inSite("repo.git"), "update-server-info");
  execFileSync("python3", ["-c", MAKE_WHEEL, inSite(`simple/tiny/${WHEEL}`)]);
  writeFileSync(inSite("simple/tiny/index.html"), `<a href="${WHEEL}">${WHEEL}</a>`);
  writeFileSync(inSite("package/package.json"), JSON.stringify({ name: "tiny", version: "1.2.3" }));
  execFileSync("tar", ["-czf", inSite("tiny.tgz"), "-C", site, "package"]);
  const dist = { tarball: "http://good.test/tiny.tgz" };
  const versions = { "1.2.3": { name: "tiny", version: "1.2.3", dist } };
  writeFileSync(inSite("tiny"), JSON.stringify({ name: "tiny", "dist-tags": { latest: "1.2.3" }, versions }));
}

/** What names lead to, from now on. The file is written in place, since the server's world has it mounted. */
export function writeHosts({ folder }: Place, more: readonly string[]): string {
  const hosts = join(folder, "hosts");
  const lines = ["127.0.0.1 localhost", `${ADDRESSES.good} good.test`, `${ADDRESSES.bad} bad.test`, ...more];
  writeFileSync(hosts, `${lines.join("\n")}\n`);
  return hosts;
}

/** A client of a server that has nothing but loopback, or a cable to the stand-in hosts good.test and bad.test. */
export async function connectInNetwork(
  place: Place,
  options: {
    readonly allow: readonly string[];
    readonly hasCable: boolean;
    readonly settings?: Settings;
    /** More lines of the hosts file. */
    readonly hosts?: readonly string[];
    /** The server's own machine serves the site too, where no sandbox may reach it. */
    readonly isServedNear?: boolean;
    /** What else the server finds on its own machine, in the words of a shell. */
    readonly more?: string;
  },
): Promise<Client> {
  const hosts = writeHosts(place, options.hosts ?? []);
  if (options.hasCable) writeSite(place.folder);
  const sandbox = { ...options.settings?.["sandbox"], network: { allow: options.allow } };
  const config = writeConfig(place, { ...options.settings, sandbox });
  const server = [process.execPath, BIN, "mcp-server", "start", "--transport", "stdio", "--config", config];
  const near = `${options.isServedNear === true ? NEAR : ""}${options.more ?? ""}`;
  const world = options.hasCable ? [WORLD, "bash", hosts, join(place.folder, "site"), near] : [ALONE, "bash"];
  const args = ["--net", "--mount", "--propagation", "private", "--", "bash", "--norc", "-c", ...world, ...server];
  const env = { PATH: process.env["PATH"] ?? "", HOME: place.folder, TMPDIR: place.folder };
  const client = new Client({ name: "e2e", version: "1" });
  await client.connect(new StdioClientTransport({ command: "unshare", args, env, stderr: "ignore" }));
  return client;
}
