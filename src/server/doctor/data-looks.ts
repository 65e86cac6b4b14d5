import { chmod, mkdir, stat, statfs } from "node:fs/promises";
import { createServer } from "node:net";
import type { Config } from "../../config/schema.ts";
import { type DoctorCheck, type DoctorLook, failed, ok, warning } from "./check.ts";

const MEGABYTE = 1024 * 1024;
const LOW_FREE_MB = 1000;
const OTHERS = 0o077;

/** The data folder, the disk below it, and the port. */
export function dataLooks({ sandbox, transport, http }: Config): readonly DoctorLook[] {
  const { root } = sandbox;
  const looks: DoctorLook[] = [
    { look: async () => [await dataFolder(root)], repair: () => repairFolder(root) },
    { look: async () => [await disk(root)] },
  ];
  if (transport === "http") looks.push({ look: async () => [await port(http.host, http.port)] });
  return looks;
}

async function dataFolder(root: string): Promise<DoctorCheck> {
  const named = { category: "data", name: "data folder" } as const;
  const found = await stat(root).catch(() => undefined);
  if (found === undefined)
    return warning(named, `${root} is not there yet`, "it is made at the first start; --fix makes it now");
  if (!found.isDirectory())
    return failed(named, `${root} is no folder`, "move it away, or set SANDBOX_ROOT to another place");
  if ((found.mode & OTHERS) !== 0)
    return warning(named, `other users can look into ${root}`, `run: chmod 700 ${root}; --fix does it`);
  return ok(named, root);
}

async function repairFolder(root: string): Promise<string | undefined> {
  const found = await stat(root).catch(() => undefined);
  if (found === undefined) {
    await mkdir(root, { recursive: true, mode: 0o700 });
    return `made ${root}`;
  }
  if (!found.isDirectory() || (found.mode & OTHERS) === 0) return undefined;
  await chmod(root, 0o700);
  return `closed ${root} to other users`;
}

async function disk(root: string): Promise<DoctorCheck> {
  const named = { category: "data", name: "disk space" } as const;
  const found = await statfs(root).catch(() => undefined);
  if (found === undefined) return ok(named, "nothing is written yet");
  const freeMb = Math.floor((found.bavail * found.bsize) / MEGABYTE);
  const message = `${freeMb} MiB are free`;
  return freeMb < LOW_FREE_MB
    ? warning(named, message, "make room: sandboxes and the ledger need it")
    : ok(named, message);
}

async function port(host: string, number: number): Promise<DoctorCheck> {
  const named = { category: "network", name: "port" } as const;
  if (number === 0) return ok(named, "any free port");
  const where = `${host}:${number}`;
  const server = createServer();
  const problem = await new Promise<string | undefined>((resolve) => {
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host: host === "localhost" ? "127.0.0.1" : host, port: number }, () => resolve(undefined));
  });
  await new Promise<void>((resolve) => server.close(() => resolve()));
  if (problem === undefined) return ok(named, `${where} is free`);
  if (problem === "EADDRINUSE")
    return failed(named, `${where} is in use`, "stop the other program, or choose another port with --port");
  return failed(named, `${where} cannot be used: ${problem}`, "set --host and --port to what this user may listen on");
}
