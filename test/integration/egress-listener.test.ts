import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createEgress } from "../../src/sandbox/network/egress.ts";
import { createResolver } from "../../src/sandbox/network/dial.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { get } from "../programs/egress/raw-client.ts";
import { asOrdinaryUser } from "../setup/ordinary-user.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { startDns } from "./egress/dns-server.ts";
import { openLoopbackDoor } from "./egress/loopback-listener.ts";
import { startSite } from "./egress/stand-in-site.ts";

const isRoot = process.getuid?.() === 0;
const SANDBOX_UID = 64_001;
const OTHER_UID = 64_002;

function createTestEgress(folder: string) {
  const egress = createEgress({ logger: SILENT_LOGGER, folder });
  onTestFinished(async () => await egress.close());
  return egress;
}

/** "in", or the code of the error, as that user sees it. */
function connectAs(uid: number, path: string): string {
  const script = `require("node:net").connect(process.argv[1]).on("connect",()=>{console.log("in");process.exit()}).on("error",(e)=>console.log(e.code))`;
  return spawnSync(process.execPath, ["-e", script, path], { uid, gid: uid, encoding: "utf8", cwd: "/" }).stdout.trim();
}

describe("the socket of a door", () => {
  test("is open to the server's own user alone, in a folder that nobody else can enter", async () => {
    const folder = join(temporaryFolder(), "sockets");
    const listener = await createTestEgress(folder).open({ sandboxId: "one", allow: [] });
    expect((statSync(listener.socketPath).mode & 0o777).toString(8)).toBe("600");
    expect((statSync(folder).mode & 0o777).toString(8)).toBe("700");
    expect((statSync(join(listener.socketPath, "..")).mode & 0o777).toString(8)).toBe("700");
  });

  test("admits the sandbox's user and no other", async (context) => {
    if (!isRoot) context.skip("only root can give a socket to another user");
    const parent = temporaryFolder();
    spawnSync("chmod", ["755", parent]);
    const folder = join(parent, "sockets");
    const listener = await createTestEgress(folder).open({ sandboxId: "one", allow: [], ownerUid: SANDBOX_UID });
    expect(connectAs(SANDBOX_UID, listener.socketPath)).toBe("in");
    expect(connectAs(OTHER_UID, listener.socketPath)).toBe("EACCES");
    const { mode, uid } = statSync(folder);
    expect([(mode & 0o777).toString(8), uid]).toEqual(["711", 0]);
  });

  test("cannot be given away by an ordinary user, and none is left behind", async () => {
    const parent = temporaryFolder();
    chmodSync(parent, 0o777);
    const folder = join(parent, "sockets");
    const open = () => createTestEgress(folder).open({ sandboxId: "one", allow: [], ownerUid: SANDBOX_UID });
    await expect(asOrdinaryUser(open)).rejects.toThrow(`cannot be given to uid ${SANDBOX_UID}`);
    expect(readdirSync(folder)).toEqual([]);
  });

  test("may lie deeper than the kernel's limit for socket paths", async () => {
    const folder = join(temporaryFolder(), "deep".repeat(30), "deep".repeat(30));
    mkdirSync(folder, { recursive: true });
    const listener = await createTestEgress(folder).open({ sandboxId: "one", allow: [] });
    expect(statSync(listener.socketPath).isSocket()).toBe(true);
    await listener.close();
    expect(existsSync(listener.socketPath)).toBe(false);
  });

  test("is gone with its folder after close, which may be called twice", async () => {
    const folder = join(temporaryFolder(), "sockets");
    const listener = await createTestEgress(folder).open({ sandboxId: "one", allow: [] });
    await listener.close();
    await listener.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("is not made when a rule is refused", async () => {
    const folder = join(temporaryFolder(), "sockets");
    await expect(createTestEgress(folder).open({ sandboxId: "one", allow: ["*.com"] })).rejects.toThrow("top-level");
    expect(existsSync(folder)).toBe(false);
  });
});

describe("names are resolved by DNS", () => {
  test("and each answer is checked", async () => {
    const site = await startSite((_, response) => response.end("site"));
    const server = await startDns({ "site.test": ["127.0.0.1"], "inner.site.test": ["127.0.0.1", "10.0.0.5"] });
    const resolve = createResolver({ timeoutMs: 2000, servers: [server] });
    const listener = await openLoopbackDoor([site.port], { resolve });
    expect(await get(listener.socketPath, `http://site.test:${site.port}/`)).toContain("site");
    expect(await get(listener.socketPath, `http://inner.site.test:${site.port}/`)).toContain("resolves to 10.0.0.5");
    expect(await get(listener.socketPath, `http://unknown.site.test:${site.port}/`)).toContain(
      "could not be resolved (ENOTFOUND)",
    );
  });

  test("and a name server that keeps silent ends in 504", async () => {
    const server = await startDns({ "site.test": "silent" });
    const resolve = createResolver({ timeoutMs: 60_000, servers: [server] });
    const listener = await openLoopbackDoor([81], { resolve, limits: { resolveTimeoutMs: 100 } });
    expect(await get(listener.socketPath, "http://site.test:81/")).toMatch(/^HTTP\/1\.1 504 [^]*no DNS answer/);
  });
});

test("each connection is reported when it opens and when it ends, with its bytes", async () => {
  const site = await startSite((_, response) => response.end("site"));
  const folder = temporaryFolder();
  const seen: unknown[] = [];
  const egress = createEgress({ logger: SILENT_LOGGER, folder, clock: () => 0, resolve: async () => ["127.0.0.1"] });
  onTestFinished(async () => await egress.close());
  const listener = await egress.open({
    sandboxId: "one",
    allow: [`127.0.0.1:${site.port}`, `site.test:${site.port}`],
    onDecision: ({ bytesSent, bytesReceived, ...rest }) =>
      seen.push({ ...rest, hasBytes: bytesSent * bytesReceived > 0 }),
  });
  await get(listener.socketPath, `http://site.test:${site.port}/`);
  await expect.poll(() => listener.openConnections).toBe(0);
  const facts = { id: 1, sandboxId: "one", time: "1970-01-01T00:00:00.000Z", host: "site.test", port: site.port };
  const allowed = { ...facts, allowed: true, address: "127.0.0.1", rule: `site.test:${site.port}` };
  expect(seen).toEqual([
    { ...allowed, isOpen: true, hasBytes: false },
    { ...allowed, isOpen: false, hasBytes: true },
  ]);
});
