import type { Language } from "../contract/guest.ts";
import { SandboxBrowser } from "./browser/browser.ts";
import { CodeRunner } from "./code/code-runner.ts";
import { findInterpreter, startInterpreter, type LanguageOptions } from "./code/interpreter.ts";
import { ServerConnection } from "./connection.ts";
import { findProgram } from "./find-program.ts";
import { createHandlers } from "./handlers.ts";
import type { SendOutput } from "./output/output-batches.ts";
import { OutputFiles } from "./output/output-files.ts";
import { Workspace } from "./paths.ts";
import { chooseLauncher } from "./processes/choose-launcher.ts";
import type { Launcher } from "./processes/running-process.ts";
import { readSettings } from "./settings.ts";
import { BackgroundProcesses } from "./shell/background.ts";
import { Terminals } from "./terminal/terminals.ts";
import { connect, createServer, type Server } from "node:net";

const DIAGNOSTICS_MAX = 20;

function main(): void {
  const settings = readSettings();
  const { environment } = settings;
  const workspace = new Workspace(settings);
  // Nothing else may write to standard output.
  const connection = new ServerConnection(process.stdin, process.stdout);
  const diagnostics: string[] = [];
  const onDiagnostic = (text: string): void => {
    if (diagnostics.length < DIAGNOSTICS_MAX) diagnostics.push(text);
    process.stderr.write(`guest: ${text}\n`);
  };
  const send: SendOutput = (output) => connection.sendOutput(output);

  const files = new OutputFiles();
  const { launcher, resolvePython } = chooseLauncher({
    python: findInterpreter("python", environment["PATH"]),
    environment,
    dataBytes: settings.dataBytes,
    onDiagnostic,
  });
  const languageOptions: LanguageOptions = { launcher, cwd: workspace.root, environment, resolvePython };
  const runner = (language: Language): CodeRunner =>
    new CodeRunner({ language, start: () => startInterpreter(language, languageOptions), files, send });
  const code = { python: runner("python"), node: runner("node") };
  const background = new BackgroundProcesses(files);
  const search = { workspace, ripgrep: findProgram("rg", environment["PATH"]) };
  const shell = { launcher, workspace, environment, background, files, send };
  const { egressSocket: socketPath, egressPort: port } = settings;
  if (socketPath !== undefined) startEgressForwarder({ socketPath, port, onDiagnostic });

  const browser = new SandboxBrowser({
    launcher,
    workspacePath: settings.workspacePath,
    environment,
    executable: settings.chromium,
    proxyPort: socketPath === undefined && !settings.hasEgressRelay ? undefined : port,
  });

  const terminals = new Terminals({ launcher, workspace, environment, send, resolvePython });
  const handlers = { environment, diagnostics, workspace, code, shell, background, search, browser, terminals };
  connection.serve(createHandlers(handlers));
  stopWithHost(launcher);
}

/** stdin ends when the server is gone. Supervisors notice the exit of the guest and end everything below them. */
function stopWithHost(launcher: Launcher): void {
  const stop = (): void => {
    launcher.close();
    process.exit(0);
  };
  process.stdin.on("end", stop);
  process.stdin.on("close", stop);
  process.stdout.on("error", stop);
}

interface EgressOptions {
  readonly socketPath: string;
  readonly port: number;
  readonly onDiagnostic: (text: string) => void;
}

/** Lets programs inside reach the egress proxy as `http://127.0.0.1:PORT`; bytes are passed on unchanged. */
function startEgressForwarder(options: EgressOptions): Server {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const proxy = connect({ path: options.socketPath, allowHalfOpen: true });
    client.pipe(proxy).pipe(client);
    const close = (): void => {
      client.destroy();
      proxy.destroy();
    };
    client.on("error", close);
    proxy.on("error", close);
    client.on("close", () => proxy.destroy());
    proxy.on("close", () => client.destroy());
  });
  server.on("error", (error) => options.onDiagnostic(`the egress forwarder cannot listen: ${error.message}`));
  server.listen(options.port, "127.0.0.1");
  return server;
}

// Errors are logged: an exit would lose the state of all calls.
process.on("uncaughtException", (error) => process.stderr.write(`guest: ${error.stack ?? error.message}\n`));
process.on("unhandledRejection", (error) => process.stderr.write(`guest: ${String(error)}\n`));

main();
