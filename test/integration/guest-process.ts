import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex } from "node:stream";
import { fileURLToPath } from "node:url";
import { onTestFinished, vi } from "vitest";
import type { GuestMethod, GuestOutput, GuestParams, GuestResult } from "../../contract/guest.ts";
import { GuestConnection } from "../../src/sandbox/guest-connection.ts";

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
  readonly output: GuestOutput[];
  readonly diagnostics: () => string;
  call<M extends GuestMethod>(method: M, params: GuestParams[M], signal?: AbortSignal): Promise<GuestResult<M>>;
  /** As a caller that breaks the contract. */
  callRaw(method: string, params: unknown): Promise<unknown>;
}

/** The real guest as a plain process, with a workspace of its own. It does not outlive the test. */
export async function startGuest({ env = {}, place = tmpdir() }: GuestOptions = {}): Promise<Guest> {
  const workspace = realpathSync(mkdtempSync(join(place, "guest-")));
  const child = spawn(process.execPath, [SCRIPT], {
    cwd: workspace,
    env: { PATH: process.env["PATH"], HOME: workspace, LANG: "C.UTF-8", OWLCLAW_WORKSPACE: workspace, ...env },
  });
  const output: GuestOutput[] = [];
  const connection = new GuestConnection({
    stream: Duplex.from({ readable: child.stdout, writable: child.stdin }),
    maxFrameBytes: 64 * 1024 * 1024,
    onOutput: (piece) => output.push(piece),
    onLost: (error) => connection.close(error),
  });
  const outputFiles: string[] = [];
  let diagnostics = "";
  child.stderr.on("data", (chunk: Buffer) => (diagnostics += chunk.toString()));
  onTestFinished(async () => {
    connection.close(new Error("the test is over"));
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
    call: async (method, params, signal) => {
      const { id, answer } = connection.request(method, params);
      signal?.addEventListener("abort", () => connection.cancel(id));
      const result = await answer;
      for (const [, file = ""] of JSON.stringify(result).matchAll(/"file":"([^"]+)"/gu)) outputFiles.push(file);
      return result as GuestResult<typeof method>;
    },
    callRaw: (method, params) => connection.request(method, params as object).answer,
  };
}
