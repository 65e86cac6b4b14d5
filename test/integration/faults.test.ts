import { execFileSync } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import path from "node:path";
import libsql from "libsql";
import { describe, expect, onTestFinished, test } from "vitest";
import { startWebhook } from "../services/webhook.ts";
import { selfSignedCertificatePem } from "../unit/auth/self-signed-certificate.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { alerting, ANSWERED, askAnyway, echo, FaultStory, REFUSED } from "./fault-story.ts";
import { startHttp, until } from "./harness.ts";

const TIMEOUT = { timeout: 120_000 };

test(
  "[004-R9.10] when the ledger's file is gone, calls are refused, and health, webhook, log and metrics say so; all is well by itself when it is back",
  TIMEOUT,
  async () => {
    const webhook = await startWebhook();
    const root = temporaryFolder({});
    const server = await startHttp({ config: alerting(webhook, root) });
    const story = new FaultStory(server, webhook, { hidden: [root] });
    expect(await echo(server.url)).toMatchObject(ANSWERED);
    renameSync(path.join(root, "ledger.db"), path.join(root, "gone.db"));
    expect(await echo(server.url)).toMatchObject(REFUSED);
    await story.tellsOf({ check: "store", status: "down", http: 503 });
    renameSync(path.join(root, "gone.db"), path.join(root, "ledger.db"));
    // Before any call: a balancer sends none to a server that is not ready.
    await story.recovers("store");
    expect(await echo(server.url)).toMatchObject(ANSWERED);
    await server.stop();
  },
);

test(
  "an engine that is away is named to operators by webhook and log, and to nobody by health or status",
  TIMEOUT,
  async () => {
    const webhook = await startWebhook();
    const root = temporaryFolder({});
    const socket = path.join(root, "none.sock");
    const sandbox = { root, runtime: "docker", docker: { host: `unix://${socket}` } };
    const server = await startHttp({ config: { ...alerting(webhook, root), sandbox } });
    const story = new FaultStory(server, webhook, { hidden: [root] });
    await story.tellsOf({ check: "runtime", status: "down", http: 503 });
    const { message } = (await story.health()).checks["runtime"] ?? {};
    expect(message).toBe("no sandbox can start: the container engine cannot be reached");
    expect(await (await fetch(server.url)).text()).not.toContain(root);
    const named = expect.stringContaining(socket) as unknown;
    expect(webhook.received).toContainEqual(expect.objectContaining({ event: "runtime_down", message: named }));
    expect(server.logs).toContainEqual(expect.objectContaining({ check: "runtime", reason: named }));
    await server.stop();
  },
);

/** A small disk of the test's own. It takes no room until something is written. */
function smallDisk(megabytes: number): string {
  const folder = temporaryFolder({});
  const image = path.join(folder, "disk.img");
  const place = path.join(folder, "mounted");
  mkdirSync(place);
  execFileSync("truncate", ["-s", `${megabytes}M`, image]);
  execFileSync("mkfs.ext4", ["-q", "-m", "0", image]);
  execFileSync("mount", ["-o", "loop", image, place]);
  onTestFinished(() => {
    execFileSync("umount", ["--lazy", place]);
    rmSync(image);
  });
  return place;
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

const canMount = process.getuid?.() === 0 && existsSync("/usr/sbin/mkfs.ext4");
describe.skipIf(!canMount)(`the disk${canMount ? "" : ": needs root and mkfs.ext4, to make a small one"}`, () => {
  test(
    "[004-R9.10] a disk that fills up is told of before it is full; a full one refuses calls; with room again they run",
    TIMEOUT,
    async () => {
      const disk = smallDisk(1500);
      const webhook = await startWebhook();
      const server = await startHttp({
        config: {
          ...alerting(webhook, path.join(disk, "data")),
          governance: { defaults: { callsPerMinute: 100_000 } },
        },
      });
      const story = new FaultStory(server, webhook, { hidden: [disk] });
      expect((await story.health()).checks["disk"]).toMatchObject({ status: "ok" });
      const fill = (name: string, bytes: number): void =>
        void execFileSync("fallocate", ["-l", String(bytes), path.join(disk, name)]);
      fill("most", freeBytes(disk) - 500 * 1024 * 1024);
      await story.tellsOf({ check: "disk", status: "degraded", http: 200 });
      expect(await echo(server.url)).toMatchObject(ANSWERED);
      fill("more", freeBytes(disk) - 50 * 1024 * 1024);
      await story.tellsOf({ check: "disk", status: "down", http: 503 });
      writeUntilFull(disk);
      await until(
        () => echo(server.url),
        (answer) => JSON.stringify(answer).includes("store_unavailable"),
      );
      for (const name of ["most", "more", "last"]) rmSync(path.join(disk, name), { force: true });
      await until(
        () => echo(server.url),
        (answer) => "result" in answer,
      );
      await story.recovers("disk");
      await server.stop();
    },
  );
});

/** To the last byte. */
function writeUntilFull(disk: string): void {
  try {
    for (let at = 0; at < 1000; at += 1)
      writeFileSync(path.join(disk, "last"), Buffer.alloc(1024 * 1024), { flag: "a" });
  } catch {
    // It is full now.
  }
}

interface CertificateLab {
  readonly story: FaultStory;
  readonly certFile: string;
  readonly keyFile: string;
  /** A certificate for the key in use. */
  certificate(endsAt: string): string;
  /** As renewals do it: in one step. */
  put(file: string, pem: string): void;
  stop(): Promise<unknown>;
}

const LATER = "491231235959Z";
const LONG_AGO = "210101000000Z";

function newKey(): { readonly key: string; certificate(endsAt: string): string } {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const certificate = (endsAt: string): string => selfSignedCertificatePem({ publicKey, privateKey, endsAt });
  return { key: String(privateKey.export({ type: "pkcs8", format: "pem" })), certificate };
}

async function startWithCertificate(): Promise<CertificateLab> {
  const folder = temporaryFolder({});
  const [certFile, keyFile] = [path.join(folder, "server.crt"), path.join(folder, "server.key")];
  const put = (file: string, pem: string): void => {
    writeFileSync(`${file}.new`, pem, { mode: 0o600 });
    renameSync(`${file}.new`, file);
  };
  const { key, certificate } = newKey();
  put(keyFile, key);
  put(certFile, certificate(LATER));
  const webhook = await startWebhook();
  const config = { ...alerting(webhook, path.join(folder, "data")), http: { tls: { certFile, keyFile } } };
  const server = await startHttp({ config });
  const story = new FaultStory(server, webhook, { ask: askAnyway, hidden: [folder] });
  expect((await story.health()).checks["certificate"]).toMatchObject({ status: "ok" });
  return { story, certFile, keyFile, certificate, put, stop: () => server.stop() };
}

test(
  "[004-R9.10] a certificate that has ended is told of, and the next one is taken without a restart",
  TIMEOUT,
  async () => {
    const { story, put, certFile, certificate, stop } = await startWithCertificate();
    put(certFile, certificate(LONG_AGO));
    await story.tellsOf({ check: "certificate", status: "down", http: 200 });
    expect((await story.health()).checks["certificate"]?.message).toContain("put a new one in its place");
    put(certFile, certificate(LATER));
    await story.recovers("certificate");
    await stop();
  },
);

test("a renewed certificate beside the old key is told of for as long as it cannot be used", TIMEOUT, async () => {
  const { story, put, certFile, keyFile, stop } = await startWithCertificate();
  const { key, certificate } = newKey();
  put(certFile, certificate(LATER));
  await story.tellsOf({ check: "certificate", status: "degraded", http: 200 });
  expect((await story.health()).checks["certificate"]?.message).toContain("together with its own key");
  put(keyFile, key);
  await story.recovers("certificate");
  await stop();
});

test("a certificate that is taken away is told of until it is back", TIMEOUT, async () => {
  const { story, certFile, stop } = await startWithCertificate();
  renameSync(certFile, `${certFile}.away`);
  await story.tellsOf({ check: "certificate", status: "degraded", http: 200 });
  expect((await story.health()).checks["certificate"]?.message).toContain("cannot be used");
  renameSync(`${certFile}.away`, certFile);
  await story.recovers("certificate");
  await stop();
});

test(
  "[004-R9.10] alerts wait for a webhook that is dead, health, log and metrics say so, and they arrive in their order when it lives",
  TIMEOUT,
  async () => {
    const root = temporaryFolder({});
    const webhook = await startWebhook();
    const server = await startHttp({ config: { ...alerting(webhook, root), ledger: { checkpointEvery: 10 } } });
    const story = new FaultStory(server, webhook, { hidden: [root] });
    webhook.isDead = true;
    for (let count = 0; count < 25; count += 1) await echo(server.url);
    const down = await until(
      () => story.health(),
      ({ checks }) => checks["webhook"]?.status === "degraded",
    );
    await story.metricIs("webhook", 0.5);
    expect(down.http).toBe(200);
    await server.logged("alert not delivered");
    expect(server.stderr.join("\n")).not.toContain("s3cret");
    expect(webhook.received).toEqual([]);
    webhook.isDead = false;
    await story.recovers("webhook");
    await server.logged("alerts are delivered again");
    const events = webhook.received.map(({ event }) => event);
    expect(events.filter((event) => event === "ledger_head").length).toBeGreaterThanOrEqual(2);
    expect(events.indexOf("webhook_degraded")).toBeLessThan(events.indexOf("webhook_recovered"));
    await server.stop();
  },
);

test(
  "a ledger that somebody has changed is found by the server itself: health, webhook, log and metrics say so",
  TIMEOUT,
  async () => {
    const root = temporaryFolder({});
    const webhook = await startWebhook();
    const config = { ...alerting(webhook, root), ledger: { verifyHours: 1 / 3600 } };
    const server = await startHttp({ config });
    const story = new FaultStory(server, webhook, { hidden: [root] });
    for (let count = 0; count < 3; count += 1) expect(await echo(server.url)).toMatchObject(ANSWERED);
    await until(
      () => story.health(),
      ({ checks }) => /rows were verified/.test(checks["ledger_verify"]?.message ?? ""),
    );
    const change = (from: string, to: string): void => {
      const database = new libsql(path.join(root, "ledger.db"));
      database.exec(
        `UPDATE ledger SET name = '${to}' WHERE name = '${from}' AND seq = (SELECT max(seq) FROM ledger WHERE name = '${from}')`,
      );
      database.close();
    };
    change("echo", "another");
    await story.tellsOf({ check: "ledger_verify", status: "down", http: 200 });
    expect(await server.logged("the ledger is not intact")).toMatchObject({
      first: expect.stringMatching(/^row \d+: changed/),
    });
    change("another", "echo");
    await story.recovers("ledger_verify");
    await server.stop();
  },
);
