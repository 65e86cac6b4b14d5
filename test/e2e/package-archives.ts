import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** A wheel made by hand: the tests need no registry. */
export function makeWheel(
  folder: string,
  { name, version, code }: Record<"name" | "version" | "code", string>,
): string {
  const root = join(folder, `wheel-${name}-${version}`);
  const info = join(root, `${name}-${version}.dist-info`);
  mkdirSync(join(root, name), { recursive: true });
  mkdirSync(info, { recursive: true });
  writeFileSync(join(root, name, "__init__.py"), code);
  writeFileSync(join(info, "METADATA"), `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`);
  writeFileSync(join(info, "WHEEL"), "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n");
  writeFileSync(join(info, "RECORD"), "");
  const file = join(folder, `${name}-${version}-py3-none-any.whl`);
  execFileSync("/usr/bin/python3", ["-m", "zipfile", "-c", file, join(root, name), info]);
  return file;
}

/** An archive whose build runs the given Python, as a source package may. */
export function makeSourcePackage(folder: string, name: string, build: string): string {
  const root = join(folder, `${name}-1.0`);
  mkdirSync(root, { recursive: true });
  writeFileSync(
    join(root, "pyproject.toml"),
    '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
  );
  writeFileSync(join(root, "backend.py"), build);
  const file = join(folder, `${name}-1.0.tar.gz`);
  execFileSync("tar", ["-czf", file, "-C", folder, `${name}-1.0`]);
  return file;
}

export function makeNodePackage(folder: string, { name, code }: Record<"name" | "code", string>): string {
  const root = join(folder, `npm-${name}`, "package");
  mkdirSync(root, { recursive: true });
  const bin = { [name]: "cli.js" };
  writeFileSync(join(root, "package.json"), JSON.stringify({ name, version: "3.0.0", main: "index.js", bin }));
  writeFileSync(join(root, "index.js"), code);
  writeFileSync(join(root, "cli.js"), "#!/usr/bin/env node\nconsole.log('from the command line');\n");
  const file = join(folder, `${name}-3.0.0.tgz`);
  execFileSync("tar", ["-czf", file, "-C", join(folder, `npm-${name}`), "package"]);
  return file;
}
