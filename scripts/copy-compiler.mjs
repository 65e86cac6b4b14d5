// Puts the TypeScript compiler beside the code that requires it: dist/node_modules/typescript-6. The npm package has it twice, with an
// editor's server and messages in thirteen languages: 24 MB, of which handlers need 7.
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { transform } from "esbuild";

const NAME = "typescript-6";
const TEXTS = ["LICENSE.txt", "ThirdPartyNoticeText.txt"];

/** @param {string} root @param {string} folder */
export async function copyCompiler(root, folder) {
  const source = join(root, "node_modules", NAME);
  /** @type {{ version: string }} */
  const { version } = JSON.parse(await readFile(join(source, "package.json"), "utf8"));
  const cache = join(root, ".cache", `${NAME}-${version}`);
  if (!existsSync(cache)) await fill(cache, source, version);
  await cp(cache, join(folder, "node_modules", NAME), { recursive: true });
}

/** Made once for each version, since it takes a second. @param {string} cache @param {string} source @param {string} version */
async function fill(cache, source, version) {
  const fresh = `${cache}.${process.pid}`;
  const lib = join(fresh, "lib");
  await mkdir(lib, { recursive: true });
  const { code } = await transform(await readFile(join(source, "lib", "typescript.js"), "utf8"), {
    minify: true,
    platform: "node",
    target: "node20",
    legalComments: "none",
  });
  await writeFile(join(lib, "typescript.js"), code);
  const types = (await readdir(join(source, "lib"))).filter((name) => /^lib\..*\.d\.ts$|^lib\.d\.ts$/.test(name));
  for (const name of types) await cp(join(source, "lib", name), join(lib, name));
  for (const name of TEXTS) await cp(join(source, name), join(fresh, name));
  const facts = { name: "typescript", version, license: "Apache-2.0", main: "./lib/typescript.js" };
  await writeFile(join(fresh, "package.json"), `${JSON.stringify(facts, undefined, 2)}\n`);
  await rm(cache, { recursive: true, force: true });
  await rename(fresh, cache);
}
