import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type esbuild from "esbuild";

const require = createRequire(import.meta.url);
let bundled: string | undefined;

/** Where the server runs from its sources, as in tests: a thread has no loader for them, so it gets one compiled text. */
export function bundleSource(file: URL): string {
  if (bundled !== undefined) return bundled;
  // oxlint-disable-next-line typescript/no-unsafe-assignment -- a package of the development set-up, loaded only there
  const { buildSync }: typeof esbuild = require("esbuild");
  const { outputFiles } = buildSync({
    entryPoints: [fileURLToPath(file)],
    bundle: true,
    write: false,
    platform: "node",
    target: "node20",
    format: "cjs",
    external: ["libsql"],
  });
  const base = `require = require("node:module").createRequire(${JSON.stringify(import.meta.url)});`;
  bundled = `${base}\n${outputFiles[0]?.text ?? ""}`;
  return bundled;
}
