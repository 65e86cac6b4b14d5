import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { openInside } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { engineLab } from "./engine-lab.ts";

const FOLDER = resolve(import.meta.dirname, "../../deploy/docker");
/** What the base image has already: nothing is fetched. */
const PACKAGES = "bash git libstdc++6 procps python3";

/** A base with tini, as Docker's own package brings it, and an image that holds Node where the official one does. */
async function importBases({ cli, folder, image }: ContainerEngine): Promise<void> {
  const made = await cli("create", image, "true");
  await cli("cp", "/usr/bin/tini", `${made}:/usr/bin/tini`);
  await cli("commit", made, "with-tini");
  await cli("rm", made);
  const tree = join(folder, "node-tree");
  const npm = join(tree, "usr/local/lib/node_modules/npm/bin");
  mkdirSync(npm, { recursive: true });
  mkdirSync(join(tree, "usr/local/bin"));
  for (const name of ["npm", "npx"]) {
    const program = `#!/usr/bin/env node\nconsole.log("${name} runs");\n`;
    writeFileSync(join(npm, `${name}-cli.js`), program, { mode: 0o755 });
  }
  cpSync(process.execPath, join(tree, "usr/local/bin/node"), { dereference: true });
  execFileSync("tar", ["-cf", `${tree}.tar`, "-C", tree, "."]);
  await cli("import", `${tree}.tar`, "with-node");
}

/** The image that is shipped as a recipe. */
export function defineDockerfileTest(engine: () => ContainerEngine): void {
  const { open } = engineLab(engine);

  test("the image that deploy/docker builds serves sandboxes with its own Node, and is nobody's root", async () => {
    const { cli } = engine();
    await importBases(engine());
    const bases = ["--build-arg", "BASE_IMAGE=with-tini", "--build-arg", "NODE_IMAGE=with-node"];
    const args = [
      ...bases,
      "--build-arg",
      `PACKAGES=${PACKAGES}`,
      "-t",
      "built",
      "-f",
      join(FOLDER, "sandbox.Dockerfile"),
    ];
    await cli("build", "--network", "none", ...args, FOLDER);
    const byHand = ["run", "--rm", "--network", "none", "built", "sh", "-c", "id -u; pwd; cat /proc/1/comm; npm; npx"];
    expect(await cli(...byHand)).toBe("1000\n/workspace\ntini\nnpm runs\nnpx runs");
    const { server, client } = await open({ image: "built" });
    const inside = await openInside(client);
    expect(await inside.sh("command -v node npm; ls -d /opt/owlclaw-node 2> /dev/null; echo of its own")).toBe(
      "/usr/local/bin/node\n/usr/local/bin/npm\nof its own\n",
    );
    expect((await inside.call("code_run", { code: "6 * 7" })).structuredContent).toMatchObject({ value: "42" });
    expect((await inside.call("code_run", { code: "6 * 7", language: "node" })).structuredContent).toMatchObject({
      value: "42",
    });
    await server.stop();
  });
}
