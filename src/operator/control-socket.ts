import { chmod, mkdir, readdir, rm } from "node:fs/promises";
import { createServer, type Socket } from "node:net";
import { join } from "node:path";
import * as z from "zod";
import type { Logger } from "../telemetry/logger.ts";
import type { DashboardAddress } from "./operator-sessions.ts";
import type { Governance } from "../call/governed-work.ts";
import { answerOperator, operatorRequests } from "./operator-requests.ts";
import type { OperatorSandboxes } from "./sandbox-service.ts";

/** The kernel's limit for the path of a Unix socket. */
const MAX_SOCKET_PATH_BYTES = 107;
const MAX_LINE_CHARS = 10_000;

const requestSchema = z.union([
  z.strictObject({ do: z.literal("list") }),
  z.strictObject({ do: z.literal("dashboard") }),
  z.strictObject({ do: z.literal("destroy"), name: z.string().max(128), by: z.string().min(1).max(256) }),
  ...operatorRequests,
]);

export interface ControlSocket {
  close(): Promise<void>;
}

export function controlFolder(dataFolder: string): string {
  return join(dataFolder, "control");
}

/** The parts of a running server that commands can query. */
interface Looked {
  readonly sandboxes: OperatorSandboxes | undefined;
  readonly governance: Governance | undefined;
  readonly dashboard: () => DashboardAddress | undefined;
}

/**
 * Lets commands on the same machine query a running server about its sandboxes, pauses and approvals. The file
 * permissions of the data folder control access: only its owner can open the socket.
 */
export async function openControlSocket(
  options: Looked & { readonly dataFolder: string; readonly logger: Logger },
): Promise<ControlSocket | undefined> {
  const { dataFolder, logger } = options;
  const folder = controlFolder(dataFolder);
  const path = join(folder, `${process.pid}.sock`);
  if (Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES) {
    logger.warning(
      "the path of the data folder is too long for a control socket: `sandboxes list` will not see this server",
    );
    return undefined;
  }
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await rm(path, { force: true });
  await removeDeadSockets(folder);
  const server = createServer((socket) => answer(socket, options));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(path, resolve);
  });
  await chmod(path, 0o600);
  server.unref();
  return {
    close: async () => {
      server.close();
      await rm(path, { force: true });
    },
  };
}

/** Removes the sockets of servers that were killed. */
async function removeDeadSockets(folder: string): Promise<void> {
  const { probeSocket } = await import("../sandbox/network/listener-socket.ts");
  for (const name of (await readdir(folder)).filter((each) => each.endsWith(".sock"))) {
    const path = join(folder, name);
    if ((await probeSocket(path)) === "dead") await rm(path, { force: true });
  }
}

/**
 * One request on one line, one response on one line. Only
 *  ends a line: readline of newer Node versions also splits at U+2028 and U+2029, which JSON texts may contain.
 */
function answer(socket: Socket, looked: Looked): void {
  socket.on("error", () => socket.destroy());
  socket.setEncoding("utf8");
  let text = "";
  const read = (chunk: string): void => {
    text += chunk;
    const end = text.indexOf("\n");
    if (end === -1 && text.length <= MAX_LINE_CHARS) return;
    socket.off("data", read);
    void respond(end === -1 ? text : text.slice(0, end), looked)
      .catch((error: unknown) => ({ error: error instanceof Error ? error.message : String(error) }))
      .then((reply) => socket.end(`${JSON.stringify(reply)}\n`));
  };
  socket.on("data", read);
}

async function respond(line: string, { sandboxes, governance, dashboard }: Looked): Promise<Record<string, unknown>> {
  if (line.length > MAX_LINE_CHARS) throw new Error("the request is too long");
  const request = requestSchema.parse(JSON.parse(line));
  switch (request.do) {
    case "list":
      return { sandboxes: sandboxes?.list() ?? [] };
    case "dashboard":
      return { dashboard: dashboard() ?? null };
    case "destroy":
      return { destroyed: (await sandboxes?.destroy(request.name, { by: request.by, transport: "local" })) ?? false };
    default:
      if (governance === undefined) throw new Error("this server has no governance");
      return answerOperator(governance, request);
  }
}
