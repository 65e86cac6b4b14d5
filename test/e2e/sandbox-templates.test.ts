import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { makeNodePackage, makeWheel } from "./package-archives.ts";
import { BIN, call, connectStdio, makePlace, type Place } from "./sandbox-client.ts";

interface Ended {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

async function template({ folder, dataFolder }: Place, ...args: readonly string[]): Promise<Ended> {
  const child = spawn(process.execPath, [BIN, "mcp-server", "template", ...args], {
    cwd: folder,
    env: { PATH: process.env["PATH"], HOME: folder, TMPDIR: folder, SANDBOX_ROOT: dataFolder },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { code: child.exitCode, out, err };
}

describe("template build", () => {
  test("installs Python and Node packages that sandboxes of the template have, read-only, and no others", async () => {
    const place = makePlace();
    const wheel = makeWheel(place.folder, { name: "acme", version: "1.2", code: "def hi(): return 'hi from acme'\n" });
    const archive = makeNodePackage(place.folder, { name: "acme-js", code: "exports.hi = () => 'hi from js';\n" });

    const built = await template(place, "build", "acme", "--python", wheel, "--node", archive);
    expect(built).toMatchObject({ code: 0, out: expect.stringContaining("Built acme: acme 1.2, acme-js 3.0.0") });
    expect(built.err, "what pip says is shown").toContain("Successfully installed acme-1.2");

    const client = await connectStdio(place);
    const { tools } = await client.listTools();
    const create = tools.find(({ name }) => name === "sandbox_create");
    expect(create?.inputSchema.properties).toMatchObject({ template: { enum: ["python", "node", "acme"] } });
    await call(client, "sandbox_create", { template: "acme" });
    const python = await call(client, "code_run", { code: "import acme; print(acme.hi())" });
    expect(python.structuredContent).toMatchObject({ stdout: "hi from acme\n" });
    const code = "import ours from 'acme-js'; console.log(ours.hi(), require('acme-js').hi())";
    const node = await call(client, "code_run", { language: "node", code });
    expect(node.structuredContent).toMatchObject({ stdout: "hi from js hi from js\n" });
    const shell = await call(client, "shell_exec", {
      command: "acme-js; touch /node_modules/x /opt/template/python/x; true",
    });
    expect(shell.structuredContent).toMatchObject({
      stdout: "from the command line\n",
      stderr: expect.stringMatching(/\/node_modules\/x.*Read-only[^]*python\/x.*Read-only/),
    });

    const { structuredContent } = await call(client, "sandbox_create", { template: "python" });
    const args = { code: "import acme", session_id: structuredContent?.["session_id"] };
    expect(await call(client, "code_run", args)).toMatchObject({ isError: true });
  });

  test("a template is listed, replaced only when asked, and removed; a sandbox can start from it by default", async () => {
    const place = makePlace();
    const first = makeWheel(place.folder, { name: "acme", version: "1.0", code: "V = 1\n" });
    const second = makeWheel(place.folder, { name: "acme", version: "2.0", code: "V = 2\n" });
    expect((await template(place, "build", "team", "--python", first)).code).toBe(0);

    const again = await template(place, "build", "team", "--python", second);
    expect(again).toMatchObject({ code: 1, err: expect.stringContaining("--replace") });
    expect((await template(place, "build", "team", "--python", second, "--replace")).code).toBe(0);

    const { templates } = JSON.parse((await template(place, "list", "--json")).out) as { templates: unknown[] };
    expect(templates).toEqual([
      { name: "python", language: "python" },
      { name: "node", language: "node" },
      expect.objectContaining({ name: "team", language: "python", packages: ["acme 2.0"] }),
    ]);
    const client = await connectStdio(place, { sandbox: { template: "team" } });
    const ran = await call(client, "code_run", { code: "import acme; print(acme.V)" });
    expect(ran.structuredContent).toMatchObject({ stdout: "2\n" });

    expect((await template(place, "remove", "team")).code).toBe(0);
    expect((await template(place, "list")).out).not.toContain("team");
    expect(readdirSync(join(place.dataFolder, "templates")), "nothing of the builds is left").toEqual([]);
  });

  test("a package that cannot be installed says why and leaves nothing", async () => {
    const place = makePlace();
    const broken = join(place.folder, "broken-1.0-py3-none-any.whl");
    writeFileSync(broken, "no archive");

    const built = await template(place, "build", "broken", "--python", broken);

    expect(built.code).toBe(1);
    expect(built.err).toMatch(/could not be installed: ERROR: .*broken/);
    expect(readdirSync(join(place.dataFolder, "templates"))).toEqual([]);
    expect(readdirSync(join(place.dataFolder, "sandboxes"))).toEqual([]);
  });

  test("what npm says in the end is not the reason: the line with the reason is", async () => {
    const place = makePlace();
    const broken = join(place.folder, "broken-1.0.0.tgz");
    writeFileSync(broken, "no archive");

    const { code, err } = await template(place, "build", "broken", "--node", broken);

    expect(code).toBe(1);
    const [, reason] = /could not be installed: (.*)/.exec(err) ?? [];
    expect(reason).toMatch(/archive|TAR/i);
    expect(reason).not.toContain("complete log");
  });

  test.each([
    ["a folder in a package's place", ["build", "mine", "--node", "./np"], /"\.\/np" is a folder.*npm pack/],
    ["a folder by its whole path", ["build", "mine", "--python", "/usr"], /"\/usr" is a folder.*wheel/],
    ["a file that is no package", ["build", "mine", "--python", "./notes.txt"], /"\.\/notes\.txt" is no package file/],
    ["a file that is not there", ["build", "mine", "--python", "./none.whl"], /there is no file "\.\/none\.whl"/],
    ["a name with a path in it", ["build", "../x", "--python", "a"], /cannot name a template/],
    ["the name of a template that is always there", ["build", "python", "--python", "a"], /cannot name a template/],
    ["no packages", ["build", "empty"], /needs packages/],
    [
      "an option of pip in a package's place",
      ["build", "sly", "--python=--index-url=http://127.0.0.1:9/"],
      /no package/,
    ],
    ["two lines in one package", ["build", "sly", "--python", "a\n--pre"], /no package/],
    ["removing what was not built", ["remove", "../data"], /no template/],
  ])("%s is refused", async (_what, args, reason) => {
    const place = makePlace();
    mkdirSync(join(place.folder, "np"));
    writeFileSync(join(place.folder, "notes.txt"), "no package");
    const ended = await template(place, ...args);
    expect(ended.code).not.toBe(0);
    expect(ended.err).toMatch(reason);
    expect(existsSync(join(place.dataFolder, "templates"))).toBe(false);
  });

  test("a server that should start from an unknown template says which there are and how to build one", async () => {
    const place = makePlace();
    const child = spawn(process.execPath, [BIN, "mcp-server", "start", "--set", "sandbox.template=nope"], {
      env: { PATH: process.env["PATH"], HOME: place.folder, SANDBOX_ROOT: place.dataFolder },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const [err] = await Promise.all([text(child.stderr), once(child, "exit")]);
    expect(child.exitCode).not.toBe(0);
    expect(err).toMatch(/sandbox\.template = "nope"[^]*no such template[^]*template build/);
  });
});
