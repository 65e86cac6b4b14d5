import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type typescript from "typescript-6";
import { expect, test } from "vitest";
import { pageText, ROOT } from "./docs-pages.ts";

const COMPILE_MS = 120_000;
const ts = createRequire(import.meta.url)("typescript-6") as typeof typescript;

/** Where the page says that a block belongs: behind this text. A block that names only a file is all of it, or its end. */
const ANCHORS: Readonly<Record<string, string>> = {
  "in GuestParams": "export interface GuestParams extends BrowserParams {\n",
  "in resultSchemas": '  "code.warm": nothing,\n',
  "in createHandlers": "  return {\n",
};
const NEW_FILES = ["guest/files/checksum.ts"];

/** The sources with the page's blocks in them. */
function changedSources(): ReadonlyMap<string, string> {
  const changed = new Map<string, string>();
  const textOf = (file: string): string => changed.get(file) ?? readFileSync(join(ROOT, file), "utf8");
  for (const [, title = "", code = ""] of pageText("docs/adding-a-tool.md").matchAll(
    /```ts\n\/\/ (.+)\n([\s\S]*?)```/g,
  )) {
    const [file = "", place] = title.split(", ");
    if (place === undefined) changed.set(file, NEW_FILES.includes(file) ? code : `${textOf(file)}\n${code}`);
    else {
      const anchor = ANCHORS[place] ?? "";
      if (anchor === "" || !textOf(file).includes(anchor)) throw new Error(`${file} has no place "${place}"`);
      changed.set(file, textOf(file).replace(anchor, `${anchor}${code}`));
    }
  }
  const handlers = "guest/handlers.ts";
  changed.set(handlers, `import { checksumOf } from "./files/checksum.ts";\n${textOf(handlers)}`);
  const tools = "src/tools/toolsets/files.ts";
  changed.set(tools, textOf(tools).replace("fileReplace()]", "fileReplace(), fileChecksum()]"));
  return changed;
}

test(
  "the example of adding-a-tool.md compiles where the page puts it",
  () => {
    const sources = new Map([...changedSources()].map(([file, text]) => [join(ROOT, file), text]));
    expect(sources.size).toBe(4);
    const { config } = ts.readConfigFile(join(ROOT, "tsconfig.json"), (path) => readFileSync(path, "utf8"));
    const { options } = ts.parseJsonConfigFileContent(config, ts.sys, ROOT);
    const host = ts.createCompilerHost(options);
    const { readFile, fileExists } = host;
    host.readFile = (path) => sources.get(path) ?? readFile.call(host, path);
    host.fileExists = (path) => sources.has(path) || fileExists.call(host, path);
    const { getSourceFile } = host;
    host.getSourceFile = (path, languageVersion, ...more) => {
      const text = sources.get(path);
      return text === undefined
        ? getSourceFile.call(host, path, languageVersion, ...more)
        : ts.createSourceFile(path, text, languageVersion);
    };
    const program = ts.createProgram({ rootNames: [...sources.keys()], options: { ...options, noEmit: true }, host });
    const problems = [...sources.keys()].flatMap((path) => {
      const file = program.getSourceFile(path);
      return [...program.getSyntacticDiagnostics(file), ...program.getSemanticDiagnostics(file)];
    });
    expect(problems.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"))).toEqual([]);
  },
  COMPILE_MS,
);
