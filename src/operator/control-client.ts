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

/** Whether a server uses this data folder. */
export async function isServed(dataFolder: string): Promise<boolean> {
  return (await askAll(dataFolder, { do: "list" })).length > 0;
}

/** The sandboxes of every server that uses this data folder. */
export async function listSandboxes(dataFolder: string): Promise<OperatorView[]> {
  const answers = await Promise.all((await sockets(dataFolder)).map((path) => ask(path, { do: "list" })));
  return answers.flatMap((answer) => (answer === undefined ? [] : listSchema.parse(answer).sandboxes));
}

/** Whether one of the servers had it. */
export async function destroySandbox(
  dataFolder: string,
  destroy: { readonly name: string; readonly by: string },
): Promise<boolean> {
  const answers = await askAll(dataFolder, { do: "destroy", ...destroy });
  return answers.some((answer) => destroySchema.parse(answer).destroyed);
}

const dashboardSchema = z.object({ dashboard: z.object({ url: z.string(), link: z.string().optional() }).nullable() });

/** Where the pages of the servers are that use this data folder, each with a new link where it takes one. */
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

/** Who is paused at the servers that use this data folder; nothing when none runs. */
export async function listPaused(dataFolder: string): Promise<Paused | undefined> {
  return pausedOf(await askAll(dataFolder, { do: "paused" }));
}

/** Who is paused then; nothing when no server runs. Without a client: everybody. */
export async function pauseClient(
  dataFolder: string,
  pause: { readonly client?: string; readonly by: string; readonly reason: string; readonly cancel: boolean },
): Promise<Paused | undefined> {
  return pausedOf(await askAll(dataFolder, { do: "pause", ...pause }));
}

/** Whether one of the servers had it paused. */
export async function resumeClient(
  dataFolder: string,
  resume: { readonly client?: string; readonly by: string },
): Promise<boolean> {
  const answers = await askAll(dataFolder, { do: "resume", ...resume });
  return answers.some((answer) => resumedSchema.parse(answer).resumed);
}

/** All servers follow one file, so that each names the same. */
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

/** The calls that wait at any server that uses this data folder. */
export async function listApprovals(dataFolder: string): Promise<z.output<typeof approvalsSchema>["approvals"]> {
  const answers = await Promise.all((await sockets(dataFolder)).map((path) => ask(path, { do: "approvals" })));
  const all = answers.flatMap((answer) => (answer === undefined ? [] : approvalsSchema.parse(answer).approvals));
  // Servers that share a store tell of each other's too.
  return [...new Map(all.map((approval) => [approval.id, approval])).values()];
}

/** Whether a call waited under this id at one of the servers. */
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
  // One after another: a server decides for those that share its store.
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

/** Nothing when the server behind the socket is dead: then its socket goes too. */
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
