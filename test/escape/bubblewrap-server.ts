import { createServer } from "node:net";
import { assembleRuntime } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-runtime.ts";
import type { Control } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-host.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { cellSpec, enter, NO_ABORT } from "./bubblewrap-instances.ts";

/** What a test asks of a server that runs as a process of its own. */
export interface ServerOrder {
  readonly dataFolder: string;
  readonly guestFolder: string;
  readonly serverId: string;
  readonly off: readonly Control[];
  readonly cells: number;
  readonly workspacePath: string;
  /** Run in each cell, one after the other. */
  readonly commands: readonly (readonly string[])[];
  /** Services of the host that must be out of reach. */
  readonly listen: readonly { readonly host: string; readonly port: number }[];
}

// Tests kill this process, start it in another network, or give it descriptors that it must not pass on.
const order = JSON.parse(process.argv.at(-1) ?? "{}") as ServerOrder;
for (const address of order.listen) {
  const server = createServer((socket) => socket.end("reached\n"));
  await new Promise<void>((resolve) => server.listen(address, resolve));
}
const runtime = await assembleRuntime(
  { ...order, logger: SILENT_LOGGER, limits: "best-effort" },
  new Set<Control>(order.off),
);
const answers = [];
for (let index = 0; index < order.cells; index += 1) {
  const spec = cellSpec(order.dataFolder, { workspacePath: order.workspacePath });
  const inside = await enter(await runtime.start(spec, NO_ABORT), spec);
  const outcomes = [];
  for (const command of order.commands) outcomes.push(await inside.run(...command));
  answers.push({ id: spec.id, folder: spec.folder, outcomes });
}
process.stdout.write(`${JSON.stringify(answers)}\n`);
setInterval(() => undefined, 1000);
