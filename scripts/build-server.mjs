// Bundles the server: node starts a few files several times as fast as six hundred. Types come from the compiler.
import { chmod, cp, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { build } from "esbuild";

/** What is started, imported or read by name. Everything else is in files that these share. */
export const ENTRIES = [
  "main",
  "index",
  "governance/ledger/sqlite/thread-main",
  "handlers/workers/node-worker",
  "handlers/typescript/compiler-process",
];

/** Native code, packages that look for their own files, and what most servers never load. */
const EXTERNAL = ["libsql", "pg", "jiti", "typescript-6", "esbuild", "tsx"];

/**
 * Returns what is in the bundle.
 * @param {string} root
 * @param {string} folder It runs under the name `dist`, or the code in it could not find its neighbours.
 * @param {{ entries?: Record<string, string>, plugins?: import("esbuild").Plugin[] }} [more] For a benchmark.
 */
export async function buildServer(root, folder, { entries: more = {}, plugins = [] } = {}) {
  const entries = ENTRIES.map((name) => [name, join(root, "src", `${name}.ts`)]);
  const { metafile } = await build({
    absWorkingDir: root,
    metafile: true,
    entryPoints: { ...Object.fromEntries(entries), ...more },
    outdir: folder,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    chunkNames: "chunks/[name]-[hash]",
    external: EXTERNAL,
    // Its other build is CommonJS, whose names a dynamic import does not see.
    alias: { yaml: join(root, "node_modules", "yaml", "browser", "dist", "index.js") },
    // A bundled CommonJS package asks for Node's own modules with `require`.
    banner: {
      js: 'import { createRequire as owlCreateRequire } from "node:module"; const require = owlCreateRequire(import.meta.url);',
    },
    legalComments: "none",
    logLevel: "warning",
    plugins: [...plugins, keepPlaces(join(root, "src"))],
  });
  const python = join("handlers", "python", "owlclaw");
  await cp(join(root, "src", python), join(folder, python), {
    recursive: true,
    filter: (path) => !path.includes("__pycache__"),
  });
  await chmod(join(folder, "main.js"), 0o755);
  return metafile;
}

/**
 * A file that looks for its neighbours by `import.meta` finds them where it would be without the bundle.
 * @param {string} source
 * @returns {import("esbuild").Plugin}
 */
function keepPlaces(source) {
  return {
    name: "keep-places",
    setup(bundle) {
      bundle.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, "utf8");
        const name = relative(source, path).replace(/\.ts$/, ".js");
        if (!text.includes("import.meta.") || name.startsWith("..")) return { contents: text, loader: "ts" };
        const url = `(import.meta.url.slice(0, import.meta.url.lastIndexOf("/dist/")) + ${JSON.stringify(`/dist/${name}`)})`;
        const folder = `owlFileUrlToPath(new URL(".", ${url})).slice(0, -1)`;
        const contents = text
          .replaceAll(/\bimport\.meta\.url\b/g, url)
          .replaceAll(/\bimport\.meta\.dirname\b/g, folder);
        const needsPath = contents.includes("owlFileUrlToPath");
        const helper = needsPath ? 'import { fileURLToPath as owlFileUrlToPath } from "node:url";\n' : "";
        return { contents: helper + contents, loader: "ts" };
      });
    },
  };
}
