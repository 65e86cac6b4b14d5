import { copyFileSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { makeNodePackage, makeWheel } from "./package-archives.ts";
import { call, connectStdio, makePlace } from "./sandbox-client.ts";

/** Packages lie in a volume: the tests need no registry. */
function packages(): { readonly place: ReturnType<typeof makePlace>; readonly volume: string } {
  const place = makePlace();
  const folder = join(place.folder, "packages");
  mkdirSync(folder);
  const code = "def hi(): return 'hi from acme'\n";
  for (const name of ["acme", "umbra", "venvy"])
    copyInto(folder, makeWheel(place.folder, { name, version: "1.0", code }));
  copyInto(folder, makeNodePackage(place.folder, { name: "acme-js", code: "exports.hi = () => 'hi from js';\n" }));
  return { place, volume: `${folder}:/packages:ro` };
}

function copyInto(folder: string, file: string): void {
  copyFileSync(file, join(folder, basename(file)));
}

test("a plain pip install works, and an interpreter that runs already sees what it brought", async () => {
  const { place, volume } = packages();
  const client = await connectStdio(place, { sandbox: { volumes: [volume] } });
  const run = (name: string, args: Record<string, unknown>) => call(client, name, args);
  expect((await run("code_run", { code: "1 + 1" })).structuredContent).toMatchObject({ value: "2" });

  const wheel = (name: string): string => `/packages/${name}-1.0-py3-none-any.whl`;
  const plain = await run("shell_exec", { command: `pip install ${wheel("acme")}` });
  expect(plain.structuredContent).toMatchObject({ exit_code: 0, stdout: expect.stringContaining("acme-1.0") });
  const imported = await run("code_run", { code: "import acme; print(acme.hi(), acme.__file__)" });
  expect(imported.structuredContent).toMatchObject({ stdout: expect.stringMatching(/^hi from acme \/workspace\//) });

  const named = await run("shell_exec", { command: `python3 -m pip install --user ${wheel("umbra")}` });
  expect(named.structuredContent).toMatchObject({ exit_code: 0 });
  expect((await run("code_run", { code: "import umbra; umbra.hi()" })).structuredContent).toMatchObject({
    value: "'hi from acme'",
  });
});

test("virtual environments and folders of one's own take packages as well", async () => {
  const { place, volume } = packages();
  const client = await connectStdio(place, { sandbox: { volumes: [volume] } });
  const command = [
    "set -e",
    "python3 -m venv env",
    "env/bin/pip install --no-index /packages/venvy-1.0-py3-none-any.whl",
    "env/bin/python -c 'import venvy; print(venvy.hi())'",
    "pip install --target lib /packages/acme-1.0-py3-none-any.whl",
    "PYTHONPATH=lib python3 -c 'import acme; print(acme.__file__)'",
  ].join("\n");
  const { structuredContent } = await call(client, "shell_exec", { command });
  expect(structuredContent).toMatchObject({
    exit_code: 0,
    stdout: expect.stringMatching(/hi from acme\n[^]*\/workspace\/lib\/acme/),
  });
});

test("npm install works, and code finds the package", async () => {
  const { place, volume } = packages();
  const client = await connectStdio(place, { sandbox: { volumes: [volume] } });
  await call(client, "code_run", { language: "node", code: "1" });
  const installed = await call(client, "shell_exec", { command: "npm install --offline /packages/acme-js-3.0.0.tgz" });
  expect(installed.structuredContent).toMatchObject({ exit_code: 0 });
  const ran = await call(client, "code_run", { language: "node", code: "require('acme-js').hi()" });
  expect(ran.structuredContent).toMatchObject({ value: "'hi from js'" });
});
