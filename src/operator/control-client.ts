import { readdir, rm } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import * as z from "zod";
import { approvalSchema } from "../governance/approval/approval-service.ts";
import { OwlError } from "../errors/owl-error.ts";
import { controlFolder } from "./control-socket.ts";
import type { OperatorView } from "./sandbox-service.ts";

const ANSWER_TIMEOUT_MS = 30_000;

const listSchema = z.object({
  sandboxes: z.array(
    z.object({
      name: z.string(),
      owner: z.string(),
      state: z.string(),
      template: z.string(),
      flavor: z.string(),
      runtime: z.string(),
      labels: z.record(z.string(), z.string()),
      created_at: z.string(),
      last_used_at: z.string(),
      ends_at: z.string(),
    }),
  ),
});

const destroySchema = z.object({ destroyed: z.boolean() });

/** Whether a running server uses this data folder. */
export async function isServed(dataFolder: string): Promise<boolean> {
  return (await askAll(dataFolder, { do: "list" })).length > 0;
}

/** The sandboxes of every server that uses this data folder. */
export async function listSandboxes(dataFolder: string): Promise<OperatorView[]> {
  const answers = await Promise.all((await sockets(dataFolder)).map((path) => ask(path, { do: "list" })));
  return answers.flatMap((answer) => (answer === undefined ? [] : listSchema.parse(answer).sandboxes));
}

/** Returns whether one of the servers had the sandbox. */
export async function destroySandbox(
  dataFolder: string,
  destroy: { readonly name: string; readonly by: string },
): Promise<boolean> {
  const answers = await askAll(dataFolder, { do: "destroy", ...destroy });
  return answers.some((answer) => destroySchema.parse(answer).destroyed);
}

const dashboardSchema = z.object({ dashboard: z.object({ url: z.string(), link: z.string().optional() }).nullable() });

/**
 * The dashboard addresses of the servers that use this data folder. Each has a new one-time link when the server
 * accepts links.
 */
export async function dashboardAddresses(
  dataFolder: string,
): Promise<{ readonly url: string; readonly link?: string | undefined }[]> {
  const answers = await Promise.all((await sockets(dataFolder)).map((path) => ask(path, { do: "dashboard" })));
  return answers.flatMap((answer) => (answer === undefined ? [] : (dashboardSchema.parse(answer).dashboard ?? [])));
}

const approvalsSchema = z.object({ approvals: z.array(approvalSchema) });

const pausedSchema = z.object({
  paused: z.array(z.object({ client: z.string(), by: z.string(), reason: z.string(), since: z.string() })),
});
const resumedSchema = z.object({ resumed: z.boolean() });

export type Paused = z.output<typeof pausedSchema>["paused"];

/** The paused clients of the servers that use this data folder. Undefined when no server runs. */
export async function listPaused(dataFolder: string): Promise<Paused | undefined> {
  return pausedOf(await askAll(dataFolder, { do: "paused" }));
}

/** Pauses a client, or all clients without `client`. Returns the paused clients, or undefined when no server runs. */
export async function pauseClient(
  dataFolder: string,
  pause: { readonly client?: string; readonly by: string; readonly reason: string; readonly cancel: boolean },
): Promise<Paused | undefined> {
  return pausedOf(await askAll(dataFolder, { do: "pause", ...pause }));
}

/** Returns whether the client was paused on one of the servers. */
export async function resumeClient(
  dataFolder: string,
  resume: { readonly client?: string; readonly by: string },
): Promise<boolean> {
  const answers = await askAll(dataFolder, { do: "resume", ...resume });
  return answers.some((answer) => resumedSchema.parse(answer).resumed);
}

/** All servers read the same file, so the first answer is complete. */
function pausedOf(answers: readonly unknown[]): Paused | undefined {
  const [first] = answers;
  return first === undefined ? undefined : pausedSchema.parse(first).paused;
}

async function askAll(dataFolder: string, request: Readonly<Record<string, unknown>>): Promise<unknown[]> {
  const answers = await Promise.all((await sockets(dataFolder)).map((path) => ask(path, request)));
  return answers.filter((answer) => answer !== undefined);
}

const problemSchema = z.object({ error: z.string() });
const decidedSchema = z.object({ decided: z.boolean() });

/** The calls that wait for approval on any server that uses this data folder. */
export async function listApprovals(dataFolder: string): Promise<z.output<typeof approvalsSchema>["approvals"]> {
  const answers = await Promise.all((await sockets(dataFolder)).map((path) => ask(path, { do: "approvals" })));
  const all = answers.flatMap((answer) => (answer === undefined ? [] : approvalsSchema.parse(answer).approvals));
  // Servers that share a store also list each other's calls.
  return [...new Map(all.map((approval) => [approval.id, approval])).values()];
}

/** Returns whether a call with this id waited on one of the servers. */
export async function decideApproval(
  dataFolder: string,
  decision: {
    readonly id: string;
    readonly decision: "approve" | "deny";
    readonly by: string;
    readonly reason: string;
  },
): Promise<boolean> {
  const request = { do: "decide", ...decision };
  // Sequentially: a server also decides for the servers that share its store.
  for (const path of await sockets(dataFolder)) {
    const answer = await ask(path, request);
    if (answer !== undefined && decidedSchema.parse(answer).decided) return true;
  }
  return false;
}

async function sockets(dataFolder: string): Promise<string[]> {
  const folder = controlFolder(dataFolder);
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => name.endsWith(".sock")).map((name) => join(folder, name));
}

/** Undefined when the server behind the socket has died. Its socket is then removed. */
async function ask(path: string, request: Readonly<Record<string, unknown>>): Promise<unknown> {
  const socket = connect(path);
  socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy(new Error("the server did not answer")));
  try {
    socket.write(`${JSON.stringify(request)}\n`);
    const answer: unknown = JSON.parse(await text(socket));
    const problem = problemSchema.safeParse(answer);
    if (problem.success) throw new OwlError("invalid_request", problem.data.error);
    return answer;
  } catch (error) {
    if (!(error instanceof Error) || !("code" in error) || error.code !== "ECONNREFUSED") throw error;
    await rm(path, { force: true });
    return undefined;
  }
}
