import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../services/free-port.ts";
import { makeMachine, type RunningMachine, startMachine } from "./machine.ts";
import { microsandboxParts } from "./microsandbox-parts.ts";

const READY_MS = 600_000;

/** A processor that has virtualisation itself, in software: one is faster than two. */
const PROCESSOR = ["-cpu", "EPYC,svm=on,npt=on", "-smp", "1", "-m", "6144"];

export interface MicrosandboxMachine extends RunningMachine {
  /** Of the server with microVMs, and of the one with bubblewrap, which starts when it is asked for. */
  readonly urls: { readonly microsandbox: string; readonly bubblewrap: string };
  /** The end of what its servers wrote. */
  lastWords(): string;
  /** What the test cannot see from outside; anything but `facts` is done first. */
  ask(what: "facts" | "kill" | "foreign" | "bubblewrap"): Promise<MachineFacts>;
}

export interface MachineFacts {
  readonly machines: number;
  readonly sandboxes: readonly string[];
  readonly folders: readonly string[];
  readonly written: string;
  readonly logs: readonly { readonly bytes: number; readonly text: string }[];
  readonly log: readonly string[];
}

/** A whole server with microVMs, in a machine whose processor is made in software. */
export async function startMicrosandboxMachine(canary: string): Promise<MicrosandboxMachine> {
  const { packages, node, home } = await microsandboxParts();
  const [port, keeper, other] = [await freePort(), await freePort(), await freePort()];
  const inside = [9000, 9001, 9002];
  const forwards = [port, keeper, other].map((each, index) => `hostfwd=tcp:127.0.0.1:${each}-:${inside[index]}`);
  const machine = await startMachine(await makeMachine(), {
    script: join(import.meta.dirname, "microsandbox-job.ts"),
    run: runScript([canary, port, other].join(" ")),
    node,
    more: {
      "node_modules/microsandbox": join(packages, "node_modules/microsandbox"),
      "node_modules/@superradcompany": join(packages, "node_modules/@superradcompany"),
      msb: home,
    },
    words: [
      ...PROCESSOR,
      "-netdev",
      `user,id=net,restrict=on,${forwards.join(",")}`,
      "-device",
      "virtio-net-pci,netdev=net",
    ],
  });
  try {
    await untilReady(machine);
  } catch (error) {
    await machine.stop();
    throw error;
  }
  const lastWords = (): string => readFileSync(machine.serial.log, "utf8").slice(-8000);
  const ask: MicrosandboxMachine["ask"] = async (what) => {
    const answer = await fetch(`http://127.0.0.1:${keeper}/${what}`);
    if (!answer.ok) throw new Error(`${what}: ${await answer.text()}\n${lastWords()}`);
    return (await answer.json()) as MachineFacts;
  };
  const [microsandbox, bubblewrap] = [`http://127.0.0.1:${port}/mcp`, `http://127.0.0.1:${other}/mcp`];
  return { ...machine, urls: { microsandbox, bubblewrap }, lastWords, ask };
}

function runScript(args: string): string {
  return `#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
exec > /dev/ttyS1 2> /dev/ttyS2
mount -o remount,rw /job
modprobe kvm-amd
mkdir -p /run/systemd/network
printf '[Match]\\nName=e*\\n[Network]\\nAddress=10.0.2.15/24\\n' > /run/systemd/network/10-e.network
systemctl start systemd-networkd
/job/node /job/job.mjs ${args}
systemctl poweroff --force
`;
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
      `the machine did not get ready: ${said(serial.log).slice(-4000)} ${said(serial.console).slice(-1000)}`,
    );
  }
}
