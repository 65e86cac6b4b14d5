import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished, vi } from "vitest";
import {
  CancellationToken,
  createMessageConnection,
  StreamMessageReader,
  StreamMessageWriter,
} from "vscode-jsonrpc/node";
import { OUTPUT_NOTIFICATION, type GuestMethods, type OutputNotification } from "../../guest/rpc.ts";

/** The bundle as it goes into sandboxes. */
const SCRIPT = fileURLToPath(new URL("../../dist/guest/guest.mjs", import.meta.url));

export interface GuestOptions {
  /** Where its workspace is made; default: the machine's folder for temporary files. */
  readonly place?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Guest {
  readonly workspace: string;
  readonly process: ChildProcessWithoutNullStreams;
  readonly output: OutputNotification[];
  readonly diagnostics: () => string;
  call<M extends keyof GuestMethods>(
    method: M,
    params: GuestMethods[M]["params"],
    token?: CancellationToken,
  ): Promise<GuestMethods[M]["result"]>;
  /** As a caller that breaks the agreement. */
  callRaw(method: string, params: unknown): Promise<unknown>;
}

/** The real guest as a plain process, with a workspace of its own. It does not outlive the test. */
export async function startGuest({ env = {}, place = tmpdir() }: GuestOptions = {}): Promise<Guest> {
  const workspace = realpathSync(mkdtempSync(join(place, "guest-")));
  const child = spawn(process.execPath, [SCRIPT], {
    cwd: workspace,
    env: { PATH: process.env["PATH"], HOME: workspace, LANG: "C.UTF-8", OWLCLAW_WORKSPACE: workspace, ...env },
  });
  const connection = createMessageConnection(
    new StreamMessageReader(child.stdout),
    new StreamMessageWriter(child.stdin),
  );
  const output: OutputNotification[] = [];
  connection.onNotification(OUTPUT_NOTIFICATION, (notification: OutputNotification) => void output.push(notification));
  connection.listen();
  const outputFiles: string[] = [];
  let diagnostics = "";
  child.stderr.on("data", (chunk: Buffer) => (diagnostics += chunk.toString()));
  onTestFinished(async () => {
    connection.dispose();
    child.kill("SIGKILL");
    // What it started ends a moment later, and may still write.
    for (const file of outputFiles) rmSync(file, { force: true });
    await vi.waitFor(() => rmSync(workspace, { recursive: true, force: true }), 20_000);
  });
  return {
    workspace,
    process: child,
    output,
    diagnostics: () => diagnostics,
    call: async (method, params, token) => {
      const result: unknown = await connection.sendRequest(method, params, token ?? CancellationToken.None);
      for (const [, file = ""] of JSON.stringify(result).matchAll(/"file":"([^"]+)"/gu)) outputFiles.push(file);
      return result as GuestMethods[typeof method]["result"];
    },
    callRaw: (method, params) => connection.sendRequest(method, params),
  };
}
