import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findNode, findPython } from "../../../../../src/sandbox/runtimes/bubblewrap/interpreters.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "owlclaw-interpreters-"));
});
afterEach(async () => await rm(folder, { recursive: true }));

async function program(path: string, text: string): Promise<string> {
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, text);
  await chmod(path, 0o755);
  return path;
}

describe("node", () => {
  it("of a version manager is shown with its whole installation, through links", async () => {
    const real = await program(join(folder, "versions/v20/bin/node"), "");
    await mkdir(join(folder, "versions/v20/lib/node_modules"), { recursive: true });
    await symlink(real, join(folder, "node"));
    expect(await findNode(join(folder, "node"))).toEqual({
      executable: real,
      trees: [{ hostPath: join(folder, "versions/v20"), kind: "folder" }],
    });
  });

  it("that stands alone is shown alone, and not the folder it happens to be in", async () => {
    const real = await program(join(folder, "bin/node"), "");
    expect(await findNode(real)).toEqual({ executable: real, trees: [{ hostPath: real, kind: "file" }] });
  });
});

describe("python", () => {
  it("behind a shim is the interpreter that the shim runs, with its own tree", async () => {
    const prefix = join(folder, "versions/3.12");
    await program(
      join(prefix, "bin/python3"),
      `#!/bin/sh\necho '["${prefix}/bin/python3", "${prefix}", "${prefix}"]'\n`,
    );
    await program(join(folder, "tool/manager"), `#!/bin/sh\nexec ${prefix}/bin/python3 "$@"\n`);
    const shim = await program(join(folder, "shims/python3"), '#!/bin/sh\nexec manager "$@"\n');
    const found = await findPython({ python: shim, searchPath: `${join(folder, "tool")}:/usr/bin:/bin` });
    expect(found).toEqual({ executable: join(prefix, "bin/python3"), trees: [{ hostPath: prefix, kind: "folder" }] });
  });

  it("that does not run, or would show half the host, is not taken", async () => {
    const broken = await program(join(folder, "broken"), "#!/bin/sh\nexit 1\n");
    const wide = await program(join(folder, "wide"), `#!/bin/sh\necho '["/home/python3", "/home", "/home"]'\n`);
    expect(await findPython({ python: broken })).toBeUndefined();
    expect(await findPython({ python: wide })).toBeUndefined();
    expect(await findPython({ python: join(folder, "absent") })).toBeUndefined();
  });
});
