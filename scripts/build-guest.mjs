// Bundles what runs inside every sandbox: node scripts/build-guest.mjs [FOLDER], default dist/guest.
import { copyFile, cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { build } from "esbuild";

const ROOT = join(import.meta.dirname, "..");

export const BUNDLES = {
  guest: "guest/main.ts",
  "search-worker": "guest/files/search-worker.ts",
  "node-driver": "guest/node/driver.ts",
  "browser-driver": "guest/browser/driver/main.ts",
  // The other end of what the server carries out of sandboxes that are elsewhere.
  "egress-relay": "src/sandbox/network/relay/inside.ts",
  // Handlers that run in a sandbox, and what "owlclaw" means to them.
  "handler-worker": "src/handlers/workers/node-worker.ts",
  owlclaw: "src/index.ts",
};

/** @satisfies {import("esbuild").BuildOptions} */
const OPTIONS = {
  absWorkingDir: ROOT,
  bundle: true,
  platform: "node",
  target: "node20",
  minifySyntax: true,
  legalComments: "none",
  logLevel: "warning",
};

/** Returns what is in the bundles. @param {string} folder */
export async function buildGuest(folder) {
  const { metafile } = await build({
    ...OPTIONS,
    metafile: true,
    entryPoints: BUNDLES,
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    format: "esm",
    external: ["jiti", "tsx", "playwright-core"],
    // A bundled CommonJS package asks for Node's own modules with `require`.
    banner: {
      js: 'import { createRequire as owlCreateRequire } from "node:module"; const require = owlCreateRequire(import.meta.url);',
    },
  });
  await build({
    ...OPTIONS,
    entryPoints: { "proxy-preload": "guest/node/proxy-preload.ts" },
    outdir: folder,
    outExtension: { ".js": ".cjs" },
    format: "cjs",
  });
  await build({
    ...OPTIONS,
    entryPoints: { "page-engine": "guest/browser/page/engine.ts" },
    outdir: folder,
    platform: "browser",
    target: "chrome120",
    minify: true,
    format: "iife",
    globalName: "engine",
    // Playwright wants an expression.
    banner: { js: "(() => {" },
    footer: { js: "return engine.createEngine(); })()" },
  });
  await copyPlaywright(folder);
  // Its compiler is looked for beside it when the first TypeScript file comes, so that it cannot be bundled.
  const jiti = join("node_modules", "jiti");
  for (const part of ["package.json", "lib", "dist"]) {
    await cp(join(ROOT, jiti, part), join(folder, jiti, part), { recursive: true });
  }
  await cp(join(ROOT, "src", "handlers", "python", "owlclaw"), join(folder, "handlers-python", "owlclaw"), {
    recursive: true,
    filter: (path) => !path.includes("__pycache__"),
  });
  const python = join(ROOT, "guest", "python");
  for (const name of await readdir(python)) {
    if (name.endsWith(".py")) await copyFile(join(python, name), join(folder, name));
  }
  return metafile;
}

/** It finds its parts beside itself. Those for people who look at traces are of no use in a sandbox. @param {string} folder */
async function copyPlaywright(folder) {
  const playwright = join("node_modules", "playwright-core");
  const unused = ["vite", "tools", "webp_codec.wasm", "xdg-open"].map((name) => join(ROOT, playwright, "lib", name));
  for (const part of ["package.json", "index.js", "index.mjs", "browsers.json", "lib", "LICENSE", "NOTICE"]) {
    await cp(join(ROOT, playwright, part), join(folder, playwright, part), {
      recursive: true,
      filter: (path) => !unused.includes(path),
    });
  }
}

if (process.argv[1] === import.meta.filename) {
  await buildGuest(join(ROOT, process.argv[2] ?? join("dist", "guest")));
}
