import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { egressEnv } from "../../src/sandbox/network/egress.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { startForwarder } from "./egress/forwarder.ts";
import { openLoopbackDoor } from "./egress/loopback-listener.ts";
import { startSite } from "./egress/stand-in-site.ts";

const run = promisify(execFile);
const MAKE_WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("tiny.py", "answer = 42")
    wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
    wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\\ntiny-1.0.dist-info/METADATA,,\\ntiny-1.0.dist-info/WHEEL,,\\ntiny-1.0.dist-info/RECORD,,\\n")
`;

test("pip installs from an index behind the door", async () => {
  const folder = temporaryFolder();
  const wheel = "tiny-1.0-py3-none-any.whl";
  await run("python3", ["-c", MAKE_WHEEL, join(folder, wheel)]);
  const bytes = readFileSync(join(folder, wheel));
  const site = await startSite((request, response) => {
    if (request.url === "/simple/tiny/") {
      response.writeHead(200, { "Content-Type": "text/html" }).end(`<a href="/files/${wheel}">${wheel}</a>`);
    } else response.end(request.url === `/files/${wheel}` ? bytes : "");
  });
  const listener = await openLoopbackDoor([site.port]);
  const env = {
    PATH: process.env["PATH"],
    HOME: folder,
    PIP_CONFIG_FILE: "/dev/null",
    ...egressEnv({ port: await startForwarder(listener.socketPath) }),
    PIP_INDEX_URL: `http://site.test:${site.port}/simple`,
    PIP_TRUSTED_HOST: "site.test",
  };
  const target = join(folder, "installed");
  await run("python3", ["-m", "pip", "install", "--quiet", "--root-user-action=ignore", "--target", target, "tiny"], {
    env,
  });
  expect(readFileSync(join(target, "tiny.py"), "utf8")).toBe("answer = 42");
  expect(listener.bytesReceived).toBeGreaterThan(bytes.length);
});

test("npm reads a registry behind the door", async () => {
  const integrity = `sha512-${createHash("sha512").update("").digest("base64")}`;
  const site = await startSite((_, response) => {
    const dist = { tarball: `http://site.test:${site.port}/tiny.tgz`, integrity };
    const versions = { "1.2.3": { name: "tiny", version: "1.2.3", dist } };
    response.setHeader("Content-Type", "application/json");
    response.end(JSON.stringify({ name: "tiny", "dist-tags": { latest: "1.2.3" }, versions }));
  });
  const listener = await openLoopbackDoor([site.port]);
  const folder = temporaryFolder();
  const env = {
    PATH: process.env["PATH"],
    HOME: folder,
    npm_config_cache: join(folder, "cache"),
    ...egressEnv({ port: await startForwarder(listener.socketPath) }),
    npm_config_registry: `http://site.test:${site.port}/`,
  };
  const { stdout } = await run("npm", ["view", "tiny", "version"], { env, cwd: folder });
  expect(stdout.trim()).toBe("1.2.3");
  expect(listener.decisions()[0]).toMatchObject({ host: "site.test", allowed: true });
});

test("Python's own library goes through the door, and shows the reason of a refusal", async () => {
  const site = await startSite((_, response) => response.end("site"));
  const listener = await openLoopbackDoor([site.port]);
  const env = {
    PATH: process.env["PATH"],
    HOME: "/nonexistent",
    ...egressEnv({ port: await startForwarder(listener.socketPath) }),
  };
  const ask = `
import sys, urllib.request, urllib.error
for url in sys.argv[1:]:
    try: print(urllib.request.urlopen(url).read().decode())
    except urllib.error.HTTPError as error: print(error.code, error.read().decode())
`;
  const { stdout } = await run("python3", ["-c", ask, `http://site.test:${site.port}/`, "http://forbidden.test/"], {
    env,
  });
  expect(stdout).toMatch(/^site\n403 egress refused: forbidden\.test:80 is not in network\.allow/);
});
