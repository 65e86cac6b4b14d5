import type { Language } from "../contract/guest.ts";
import { type SandboxBrowser, browserHandlers } from "./browser/browser.ts";
import type { CodeRunner } from "./code/code-runner.ts";
import { findInterpreter } from "./code/interpreter.ts";
import type { Handlers } from "./connection.ts";
import { listFiles } from "./files/list.ts";
import { readFile, readTexts } from "./files/read.ts";
import { replaceInFile } from "./files/replace.ts";
import { searchFiles, type SearchOptions } from "./files/search.ts";
import { writeFile } from "./files/write.ts";
import type { Workspace } from "./paths.ts";
import { killProcess, listProcesses } from "./processes/all-processes.ts";
import type { BackgroundProcesses } from "./shell/background.ts";
import { execShell, type ShellOptions } from "./shell/exec.ts";
import type { Terminals } from "./terminal/terminals.ts";

const VERSION = "1";
const LANGUAGES: readonly Language[] = ["python", "node"];

interface HandlerOptions {
  readonly environment: Readonly<Record<string, string>>;
  readonly diagnostics: readonly string[];
  readonly workspace: Workspace;
  readonly code: Readonly<Record<Language, CodeRunner>>;
  readonly shell: ShellOptions;
  readonly background: BackgroundProcesses;
  readonly search: SearchOptions;
  readonly browser: SandboxBrowser;
  readonly terminals: Terminals;
}

/** Every method of the guest. */
export function createHandlers(options: HandlerOptions): Handlers {
  const { environment, diagnostics, workspace, code, shell, background, search, browser, terminals } = options;
  return {
    "guest.hello": () => ({
      version: VERSION,
      languages: LANGUAGES.filter((language) => findInterpreter(language, environment["PATH"]) !== undefined),
      diagnostics,
    }),
    "code.warm": async ({ language, preload }) => {
      await code[language].warm(preload);
      return {};
    },
    "code.run": (params, signal) => code[params.language].run(params, signal),
    "shell.exec": (params, signal) => execShell(shell, params, signal),
    "shell.output": (params) => background.read(params),
    "shell.kill": (params) => background.kill(params),
    "file.read": (params, signal) => readFile(workspace, params, signal),
    "file.write": (params) => writeFile(workspace, params),
    "file.list": (params, signal) => listFiles(workspace, params, signal),
    "file.texts": (params) => readTexts(workspace, params),
    "file.search": (params, signal) => searchFiles(search, params, signal),
    "file.replace": (params) => replaceInFile(workspace, params),
    "terminal.run": (params, signal) => terminals.run(params, signal),
    "terminal.input": (params) => terminals.input(params),
    "terminal.resize": (params) => terminals.resize(params),
    "process.list": () => listProcesses(),
    "process.kill": (params) => killProcess(params),
    ...browserHandlers(browser),
  };
}
