import { createHash, randomBytes } from "node:crypto";
import { request } from "node:http";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { call, headersOf, SECRET, token } from "../integration/governance-lab.ts";
import { type HttpServer, until } from "../integration/harness.ts";
import { startServices, SERVICES_MISSING, type Services } from "../services/cluster.ts";
import { describeUnless } from "../setup/mandatory.ts";

const CONFIG = {
  auth: { enabled: true, jwt: { secret: SECRET } },
  governance: { defaults: { callsPerMinute: 100_000, concurrency: 1000 } },
  sandbox: { enabled: true, pool: { size: 0 } },
  handlers: { paths: [] },
};

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

describeUnless(SERVICES_MISSING, "whole files of a sandbox on another server", () => {
  let services: Services;
  let home: HttpServer;
  let other: HttpServer;
  let [ada, eve] = [{ token: "" }, { token: "" }];

  beforeAll(async () => {
    services = await startServices();
    home = await services.start({ config: CONFIG });
    other = await services.start({ config: CONFIG });
    ada = { token: await token("ada") };
    eve = { token: await token("eve") };
  });
  afterAll(async () => {
    await Promise.all([home.stop(), other.stop()]);
    await services.stop();
  });

  async function sandboxOn({ url }: HttpServer): Promise<string> {
    const { body } = await call(url, "sandbox_create", {}, ada);
    return String(body.result?.["structuredContent"].session_id);
  }

  const urlOf = ({ origin }: HttpServer, id: string, path: string): string =>
    `${origin}/api/sandboxes/${id}/files/${path}`;

  function put(url: string, body: Buffer, who = ada): Promise<Response> {
    return fetch(url, { method: "PUT", body: new Uint8Array(body), headers: headersOf(who) });
  }

  test("go in and out whole, in ranges, and as on their own", async () => {
    const id = await sandboxOn(home);
    const file = randomBytes(3_000_001);
    const written = await put(urlOf(other, id, "data/big.bin"), file);
    expect([written.status, await written.json()]).toEqual([
      201,
      { path: "data/big.bin", size_bytes: file.length, created: true, session_created: false },
    ]);
    for (const server of [home, other]) {
      const read = await fetch(urlOf(server, id, "data/big.bin"), { headers: headersOf(ada) });
      expect([read.status, read.headers.get("content-length")]).toEqual([200, String(file.length)]);
      expect(sha256(Buffer.from(await read.arrayBuffer()))).toBe(sha256(file));
    }
    const range = { range: "bytes=1000000-1999999", ...headersOf(ada) };
    const part = await fetch(urlOf(other, id, "data/big.bin"), { headers: range });
    expect([part.status, part.headers.get("content-range")]).toEqual([206, `bytes 1000000-1999999/${file.length}`]);
    expect(sha256(Buffer.from(await part.arrayBuffer()))).toBe(sha256(file.subarray(1_000_000, 2_000_000)));
    const head = await fetch(urlOf(other, id, "data/big.bin"), { method: "HEAD", headers: headersOf(ada) });
    expect([head.status, head.headers.get("content-length")]).toEqual([200, String(file.length)]);
    const again = await put(urlOf(other, id, "data/big.bin"), Buffer.alloc(0));
    expect(await again.json()).toMatchObject({ size_bytes: 0, created: false });
    expect((await fetch(urlOf(other, id, "data/nothing"), { headers: headersOf(ada) })).status).toBe(404);
    expect((await put(urlOf(other, id, "data"), file)).status).toBe(409);
    const rows = services.postgres.sql("SELECT count(*) FROM ledger WHERE called_as LIKE 'PUT %' AND outcome = 'ok'");
    expect(rows).toBe("2");
  });

  test("are nobody else's, and look as if they were not there", async () => {
    const id = await sandboxOn(home);
    expect((await put(urlOf(other, id, "note.txt"), Buffer.from("mine"))).status).toBe(201);
    for (const server of [home, other]) {
      expect((await fetch(urlOf(server, id, "note.txt"), { headers: headersOf(eve) })).status).toBe(404);
      expect((await put(urlOf(server, id, "note.txt"), Buffer.from("hers"), eve)).status).toBe(404);
    }
    const read = await fetch(urlOf(other, id, "note.txt"), { headers: headersOf(ada) });
    expect(await read.text()).toBe("mine");
  });

  test("that do not come whole leave nothing, and the sandbox is free", async () => {
    const id = await sandboxOn(home);
    const sending = request(urlOf(other, id, "half.bin"), {
      method: "PUT",
      headers: { ...headersOf(ada), "content-length": 5_000_000 },
    });
    sending.on("error", () => undefined);
    sending.write(randomBytes(600_000));
    const list = async (): Promise<string> => {
      const { body } = await call(home.url, "shell_exec", { command: "ls -A", session_id: id }, ada);
      return String(body.result?.["structuredContent"].stdout);
    };
    await until(list, (names) => names.includes(".part"));
    sending.destroy();
    expect((await until(list, (names) => !names.includes(".part"))).trim()).toBe("");
  });

  test("are elsewhere when the server with the sandbox is gone", async () => {
    const dying = await services.start({ config: CONFIG });
    const id = await sandboxOn(dying);
    expect((await put(urlOf(other, id, "note.txt"), Buffer.from("x"))).status).toBe(201);
    dying.child.kill("SIGKILL");
    await dying.exit();
    const read = (): Promise<Response> => fetch(urlOf(other, id, "note.txt"), { headers: headersOf(ada) });
    const answer = await read();
    expect([answer.status, await answer.text()]).toEqual([409, expect.stringContaining("session_elsewhere")]);
    expect((await put(urlOf(other, id, "note.txt"), Buffer.from("y"))).status).toBe(409);
  });
});

function sha256(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
