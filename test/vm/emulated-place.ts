import { existsSync, readFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../services/free-port.ts";
import { asker, type KeptPlace } from "./kept-place.ts";
import { type GivenOrder, type KeeperOrder, keeperCommand } from "./keeper-order.ts";
import { makeMachine, type RunningMachine, startMachine } from "./machine.ts";

const READY_MS = 600_000;
/** Where the machine has the job. */
const JOB = "/job";
const DOORS = { microsandbox: 9000, bubblewrap: 9002 };
const KEEPER_PORT = 9001;

/** For servers that are reached under the same port inside and outside. */
export async function emulatedOrder(given: GivenOrder): Promise<KeeperOrder> {
  return {
    ...given,
    job: JOB,
    msb: `${JOB}/msb`,
    place: "/root",
    volume: "/srv/beside",
    ports: { microsandbox: await freePort(), bubblewrap: await freePort() },
    doors: DOORS,
    keeper: { host: "0.0.0.0", port: KEEPER_PORT },
  };
}

/** What the machine starts as `run.sh`: a file of the job. */
export function machineScript(order: KeeperOrder): string {
  const keeper = keeperCommand(order).map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`);
  return `#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
exec > /dev/ttyS1 2> /dev/ttyS2
mount -o remount,rw /job
modprobe kvm-amd
mkdir -p /run/systemd/network
printf '[Match]\\nName=e*\\n[Network]\\nAddress=10.0.2.15/24\\n' > /run/systemd/network/10-e.network
systemctl start systemd-networkd
touch /etc/hosts
${keeper.join(" ")}
systemctl poweroff --force
`;
}

export interface EmulatedWish {
  readonly order: KeeperOrder;
  /** A folder of its own with the job in it; it goes away with the machine. */
  readonly place: string;
  readonly processor: readonly string[];
}

/** Servers in a machine whose processor is made in software. */
export async function startEmulated({ order, place, processor }: EmulatedWish): Promise<KeptPlace> {
  const keeper = await freePort();
  const forwards = [
    [keeper, KEEPER_PORT],
    [order.ports.microsandbox, DOORS.microsandbox],
    [order.ports.bubblewrap, DOORS.bubblewrap],
  ].map(([from, to]) => `hostfwd=tcp:127.0.0.1:${from}-:${to}`);
  const network = ["-netdev", `user,id=net,restrict=on,${forwards.join(",")}`, "-device", "virtio-net-pci,netdev=net"];
  const machine = await startMachine(await makeMachine(), { place, words: [...processor, ...network] });
  try {
    await untilReady(machine);
  } catch (error) {
    await machine.stop();
    throw error;
  }
  const lastWords = (): string => readFileSync(machine.serial.log, "utf8").slice(-8000);
  const name = "in a virtual machine whose processor is emulated";
  return { name, order, lastWords, ask: asker(keeper, lastWords), stop: machine.stop };
}

async function untilReady({ serial, exited }: RunningMachine): Promise<void> {
  let isOver = false;
  void exited.then(() => {
    isOver = true;
  });
  const said = (file: string): string => (existsSync(file) ? readFileSync(file, "utf8") : "");
  for (const deadline = Date.now() + READY_MS; !said(serial.results).includes("ready"); await delay(200)) {
    if (!isOver && Date.now() < deadline) continue;
    throw new Error(
      `the machine did not get ready: ${said(serial.log).slice(-4000)} ${troubleIn(said(serial.console))}`,
    );
  }
}

/** A kernel that fails says why in its first lines of many. */
function troubleIn(console: string): string {
  const at = console.search(/BUG:|WARNING:|Oops:|Kernel panic/);
  return at < 0 ? console.slice(-1000) : console.slice(at, at + 8000);
}
