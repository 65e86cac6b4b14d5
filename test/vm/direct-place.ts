import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { freePort } from "../services/free-port.ts";
import { asker, type KeptPlace } from "./kept-place.ts";
import { type GivenOrder, type KeeperOrder, keeperCommand } from "./keeper-order.ts";

const MAX_LOG_CHARS = 8000;

/** This machine boots no microVM, and the server's own probe said why. */
export class NoBootError extends Error {}

/** For servers on this machine, below one folder. */
export async function directOrder(given: GivenOrder, place: string): Promise<KeeperOrder> {
  return {
    ...given,
    job: join(place, "job"),
    msb: join(place, "msb"),
    place,
    volume: join(place, "beside"),
    ports: { microsandbox: await freePort(), bubblewrap: await freePort() },
    keeper: { host: "127.0.0.1", port: await freePort() },
  };
}

/** Servers on this machine itself. Throws a `NoBootError` where it boots no microVM: only a real boot shows that. */
export async function startDirect(order: KeeperOrder): Promise<KeptPlace> {
  const [command = "", ...args] = keeperCommand(order);
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const exited = once(child, "exit");
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-MAX_LOG_CHARS);
  });
  const ready = once(createInterface({ input: child.stdout }), "line");
  // Not its exit: what it said last is read by then.
  const isOver = await Promise.race([ready.then(() => false), once(child, "close").then(() => true)]);
  if (isOver) {
    const why = whyUseless(log);
    throw why.includes("a microVM does not start here")
      ? new NoBootError(why)
      : new Error(`the servers did not start:\n${log}`);
  }
  const lastWords = (): string => log;
  return {
    name: "on this machine",
    order,
    lastWords,
    ask: asker(order.keeper.port, lastWords),
    stop: async () => {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

/** What the server itself wrote about it. */
function whyUseless(log: string): string {
  const line = log.split("\n").findLast((each) => each.includes('"sandboxes are not available"'));
  return line === undefined ? "" : (JSON.parse(line) as { reason: string }).reason;
}
