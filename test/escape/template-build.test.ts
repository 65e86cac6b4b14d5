import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, lstatSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { makeSourcePackage } from "../e2e/package-archives.ts";
import { BIN, call, connectStdio, makePlace } from "../e2e/sandbox-client.ts";

/** What a hostile source package does while pip builds it; each line of the report is something that worked. */
function hostileBuild(secretFile: string, ownedFile: string): string {
  return `
import os, shutil, socket, zipfile
REPORT = []
def attempt(what, action):
    try:
        action()
        REPORT.append(what)
    except BaseException:
        pass

def swap(folder):
    if os.path.ismount(folder): raise OSError("a mount cannot be replaced")
    shutil.rmtree(folder); os.symlink("/", folder)

def attack():
    attempt("read a secret of the server", lambda: open(${JSON.stringify(secretFile)}).read())
    attempt("wrote beside the template", lambda: open(${JSON.stringify(ownedFile)}, "w").write("owned"))
    attempt("wrote a manifest", lambda: open("/build/template.json", "w").write("{}"))
    attempt("replaced the Python folder", lambda: swap("/build/python"))
    attempt("moved the Python folder", lambda: os.rename("/build/python", "/build/elsewhere"))
    attempt("replaced the Node folder", lambda: swap("/build/node_modules"))
    attempt("reached the host", lambda: socket.create_connection(("127.0.0.1", 9), 1))
    attempt("wrote to the system", lambda: open("/usr/lib/owned", "w"))
    # This works, and leads nowhere: whoever follows it is in a sandbox.
    os.symlink("/", "/build/python/everything")

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    attack()
    name = "hostile-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        wheel.writestr("hostile.py", "REPORT = " + repr(REPORT) + "\\n")
        wheel.writestr("hostile-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: hostile\\nVersion: 1.0\\n")
        wheel.writestr("hostile-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("hostile-1.0.dist-info/RECORD", "")
    return name
`;
}

test("a package that attacks while it is built reaches nothing outside, and nothing of the host shows in its template", async () => {
  const place = makePlace();
  const secretFile = join(place.folder, "secret");
  const ownedFile = join(place.dataFolder, "templates", "owned");
  writeFileSync(secretFile, "the server's own");
  const archive = makeSourcePackage(place.folder, "hostile", hostileBuild(secretFile, ownedFile));

  const child = spawn(process.execPath, [BIN, "mcp-server", "template", "build", "hostile", "--python", archive], {
    env: { PATH: process.env["PATH"], HOME: place.folder, TMPDIR: place.folder, SANDBOX_ROOT: place.dataFolder },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const [err] = await Promise.all([text(child.stderr), once(child, "exit")]);
  expect({ code: child.exitCode, err }).toMatchObject({ code: 0 });

  const folder = join(place.dataFolder, "templates", "hostile");
  expect(readFileSync(join(folder, "python", "hostile.py"), "utf8").trim()).toBe("REPORT = []");
  expect(existsSync(ownedFile)).toBe(false);
  expect(lstatSync(join(folder, "python")).isDirectory()).toBe(true);
  expect(lstatSync(join(folder, "node_modules")).isDirectory()).toBe(true);

  const client = await connectStdio(place, { sandbox: { template: "hostile" } });
  const path = `/opt/template/python/everything${secretFile}`;
  const read = await call(client, "shell_exec", { command: `cat ${path}; ls /opt/template/python/everything; true` });
  expect(read.structuredContent).toMatchObject({
    stdout: expect.stringContaining("workspace"),
    stderr: expect.stringContaining("No such file"),
  });
});
