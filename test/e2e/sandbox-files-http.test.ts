import { createHash, randomBytes } from "node:crypto";
import { request as httpRequest } from "node:http";
import { readFileSync } from "node:fs";
import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test } from "vitest";
import { mintToken } from "../../src/auth/mint-token.ts";
import { call, connectHttp, makePlace, Server } from "./sandbox-client.ts";

const SECRET = "a secret that is long enough for tests";
const MIB = 1024 ** 2;

interface Door {
  readonly server: Server;
  readonly origin: string;
  readonly client: Client;
  readonly sessionId: string;
  readonly headers: Readonly<Record<string, string>>;
}

async function bearer(subject: string): Promise<Record<string, string>> {
  const token = await mintToken({ secret: SECRET, subject, scopes: [], expiresInSeconds: 600 });
  return { authorization: `Bearer ${token}` };
}

const servers = new Map<boolean, Server>();

beforeAll(() => {
  for (const withAuth of [false, true])
    servers.set(
      withAuth,
      new Server(makePlace(), {
        ...(withAuth && { auth: { enabled: true, jwt: { secret: SECRET } } }),
        sandbox: { maxPerPrincipal: 20 },
      }),
    );
});

/** A sandbox of its own; of a server that is shared, unless it is given. */
async function openDoor({ withAuth, own }: { readonly withAuth: boolean; readonly own?: Server }): Promise<Door> {
  const server = own ?? servers.get(withAuth)!;
  const headers = withAuth ? await bearer("ada") : {};
  const url = await server.url();
  const client = await connectHttp(url, headers);
  const created = await call(client, "sandbox_create");
  return { server, origin: new URL(url).origin, client, sessionId: idOf(created), headers };
}

function idOf({ structuredContent }: { structuredContent?: Record<string, unknown> }): string {
  return String(structuredContent?.["session_id"]);
}

function urlOf({ origin, sessionId }: Door, path: string): string {
  return `${origin}/api/sandboxes/${sessionId}/files/${path}`;
}

function get(door: Door, path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(urlOf(door, path), { headers: { ...door.headers, ...headers } });
}

function put(
  door: Door,
  path: string,
  body: string | Uint8Array<ArrayBuffer>,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(urlOf(door, path), { method: "PUT", body, headers: { ...door.headers, ...headers } });
}

async function shell({ client, sessionId }: Door, command: string): Promise<string> {
  const result = await call(client, "shell_exec", { command, session_id: sessionId });
  return String(result.structuredContent?.["stdout"]);
}

function digest(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

async function bytesOf(response: Response): Promise<Uint8Array> {
  return new Uint8Array(await response.arrayBuffer());
}

async function digestOf(response: Response): Promise<string> {
  return digest(await bytesOf(response));
}

interface Refusal {
  readonly error: { readonly message: string; readonly data: Record<string, unknown> };
}

async function refusalOf(response: Response): Promise<{ status: number; message: string }> {
  const { error } = (await response.json()) as Refusal;
  expect(error.data).toMatchObject({ trace_id: response.headers.get("x-trace-id"), kind: expect.any(String) });
  return { status: response.status, message: error.message };
}

/** A request as written: `fetch` would tidy its path. */
function raw(door: Door, target: string, method = "GET"): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(
      door.origin,
      { path: target, method, headers: { ...door.headers, connection: "close" } },
      (response) => {
        let body = "";
        response.setEncoding("utf8").on("data", (text: string) => (body += text));
        response.on("end", () => resolve({ status: response.statusCode ?? 0, body }));
      },
    );
    asked.on("error", reject).end();
  });
}

async function until<T>(ask: () => T | Promise<T>, isGood: (value: T) => boolean): Promise<T> {
  for (;;) {
    const value = await ask();
    if (isGood(value)) return value;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

describe("files over HTTP", () => {
  let door: Door;
  beforeAll(async () => {
    door = await openDoor({ withAuth: false });
  });

  test.each([{ withAuth: false }, { withAuth: true }])(
    "a file that was put is a file of the sandbox, and one that was made inside can be got, auth: $withAuth",
    async ({ withAuth }) => {
      const door = await openDoor({ withAuth });
      const created = await put(door, "data/in%20put.csv", "a,b\n1,2\n");
      expect([created.status, await created.json()]).toEqual([
        201,
        { path: "data/in put.csv", size_bytes: 8, created: true, session_created: false },
      ]);
      expect(await shell(door, "cat 'data/in put.csv'; tr a-z A-Z < 'data/in put.csv' > out.csv")).toBe("a,b\n1,2\n");
      const got = await get(door, "out.csv");
      expect([got.status, await got.text()]).toEqual([200, "A,B\n1,2\n"]);
      expect(Object.fromEntries(got.headers)).toMatchObject({
        "content-type": "application/octet-stream",
        "content-length": "8",
        "content-disposition": "attachment",
        "x-content-type-options": "nosniff",
      });
    },
  );

  test("every byte comes back as it was, in an empty file too", async () => {
    const bytes = Uint8Array.from({ length: 1024 }, (_, index) => index % 256);
    await put(door, "all-bytes", bytes);
    expect(await bytesOf(await get(door, "all-bytes"))).toEqual(bytes);
    expect((await put(door, "empty", "")).status).toBe(201);
    expect([(await get(door, "empty")).status, await (await get(door, "empty")).text()]).toEqual([200, ""]);
  });

  test("a file that comes with a digest is put in place when it has that digest, and only then", async () => {
    const announced = (text: string) => `sha-256=:${createHash("sha256").update(text).digest("base64")}:`;
    const send = (body: string, header: string) => put(door, "digest.txt", body, { "content-digest": header });
    expect((await send("right", announced("right"))).status).toBe(201);
    const several = `sha-512=:AAAA:, ${announced("also right")}`;
    expect((await send("also right", several)).status).toBe(200);
    expect(await refusalOf(await send("wrong", announced("another")))).toEqual({
      status: 400,
      message: `the body is not what Content-Digest says: its SHA-256 is ${digest(Buffer.from("wrong"))}`,
    });
    for (const header of ["sha-256=abc", "sha-512=:AAAA:", ""])
      expect(await refusalOf(await send("wrong", header))).toEqual({
        status: 400,
        message: "Content-Digest has no SHA-256 of the body",
      });
    expect(await shell(door, "cat digest.txt; ls -A | grep part || true")).toBe("also right");
  });

  test("30 MiB go in and out unchanged", async () => {
    const bytes = randomBytes(30 * MIB + 17);
    const response = await put(door, "large.bin", bytes);
    expect([response.status, ((await response.json()) as { size_bytes: number }).size_bytes]).toEqual([
      201,
      bytes.length,
    ]);
    expect(await shell(door, "sha256sum large.bin | cut -d' ' -f1; ls -A | grep -c part || true")).toBe(
      `${digest(bytes)}\n0\n`,
    );
    expect(await digestOf(await get(door, "large.bin"))).toBe(digest(bytes));
  });

  test("a file that exists is replaced and keeps its permissions", async () => {
    await shell(door, "echo old > run.sh; chmod 750 run.sh");
    const replaced = await put(door, "run.sh", "echo new");
    expect([replaced.status, await replaced.json()]).toMatchObject([200, { created: false }]);
    expect(await shell(door, "stat -c %a run.sh; cat run.sh")).toBe("750\necho new");
  });
});

describe("who may", () => {
  test("without a token it is 401, and another principal gets the words for an unknown sandbox", async () => {
    const door = await openDoor({ withAuth: true });
    await put(door, "secret.txt", "ada's");
    const open = await fetch(urlOf(door, "secret.txt"));
    expect([open.status, open.headers.get("www-authenticate")]).toEqual([401, expect.stringContaining("Bearer")]);
    const eve = { ...door, headers: await bearer("eve") };
    const unknown = await refusalOf(await get({ ...eve, sessionId: "x".repeat(32) }, "secret.txt"));
    expect(unknown).toMatchObject({ status: 404, message: "there is no sandbox with this session_id" });
    expect(await refusalOf(await get(eve, "secret.txt"))).toEqual(unknown);
    expect(await refusalOf(await put(eve, "secret.txt", "eve's"))).toEqual(unknown);
    expect(await (await get(door, "secret.txt")).text()).toBe("ada's");
  });

  test("where sandboxes are switched off there is no such place", async () => {
    const origin = new URL(await new Server(makePlace(), { sandbox: { enabled: false } }).url()).origin;
    expect((await fetch(`${origin}/api/sandboxes/x/files/y`)).status).toBe(404);
  });
});

describe("what is refused, and how", () => {
  let door: Door;
  beforeAll(async () => {
    door = await openDoor({ withAuth: false });
    await shell(door, "mkdir folder; echo x > file; ln -s /etc etc; ln -s /etc/hostname host; mkfifo pipe");
  });

  test.each([
    ["a file that is not there", "nothing.txt", 404],
    ["a folder", "folder", 409],
    ["a pipe", "pipe", 409],
    ["a path through a file", "file/below", 409],
    ["a link out of the workspace", "host", 403],
    ["a folder that leads out of the workspace", "etc/hostname", 403],
  ])("GET %s", async (_name, path, status) => {
    expect(await refusalOf(await get(door, path))).toMatchObject({ status });
  });

  test.each([
    ["a folder", "folder", 409],
    ["a pipe", "pipe", 409],
    ["a path through a file", "file/below", 409],
    ["a link out of the workspace", "host", 403],
    ["a folder that leads out of the workspace", "etc/new", 403],
  ])("PUT to %s", async (_name, path, status) => {
    const refusal = await refusalOf(await put(door, path, "x"));
    expect(refusal).toMatchObject({ status });
    expect(refusal.message).not.toContain(".part");
    expect(await shell(door, "ls -A")).toBe("etc\nfile\nfolder\nhost\npipe\n");
  });

  test.each([
    "../file",
    "folder/../file",
    "%2e%2e/file",
    "./file",
    "folder//file",
    "folder%2ffile",
    "file%00",
    "%ff",
    "%",
    "",
    "file/",
  ])("the path %j is refused before anything is looked at", async (path) => {
    for (const method of ["GET", "PUT"]) {
      const { status, body } = await raw(door, `/api/sandboxes/${door.sessionId}/files/${path}`, method);
      expect([status, JSON.parse(body)]).toMatchObject([400, { error: { data: { kind: "invalid_request" } } }]);
    }
  });

  test("what is encoded twice is decoded once", async () => {
    expect((await put(door, "a%252fb", "x")).status).toBe(201);
    expect(await shell(door, "rm a%2fb && echo removed")).toBe("removed\n");
  });

  test("other methods are not allowed", async () => {
    const response = await fetch(urlOf(door, "file"), { method: "POST", body: "x" });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD, PUT, OPTIONS"]);
  });

  test("parts of files and encoded bodies are refused", async () => {
    expect((await put(door, "new", "x", { "content-range": "bytes 0-0/5" })).status).toBe(400);
    expect((await put(door, "new", "x", { "content-encoding": "gzip" })).status).toBe(415);
    expect((await get(door, "new")).status).toBe(404);
  });

  test("more than the disk quota is 507 with the reason, before it is sent", async () => {
    const { status, body } = await new Promise<{ status: number; body: string }>((resolve, reject) => {
      const headers = { "content-length": String(3 * 1024 ** 3) };
      const asked = httpRequest(urlOf(door, "huge"), { method: "PUT", headers }, (response) => {
        let text = "";
        response.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        response.on("end", () => {
          resolve({ status: response.statusCode ?? 0, body: text });
          asked.destroy();
        });
      });
      asked.on("error", reject);
      asked.write("x");
    });
    expect([status, JSON.parse(body)]).toMatchObject([507, { error: { message: /disk quota is 2147483648 bytes/ } }]);
  });

  test("a disk that fills up on the way is 507, and no part stays", async (context) => {
    if (process.getuid?.() !== 0) context.skip("only root can give a workspace a disk of its own");
    await shell(door, "fallocate -l $(( $(df --output=avail -B1 . | tail -1) - 3000000 )) fill");
    const refusal = await refusalOf(await put(door, "too-much", randomBytes(8 * MIB)));
    expect(refusal).toMatchObject({ status: 507, message: "too-much: the disk quota is used up" });
    expect(await shell(door, "rm fill; ls -A")).toBe("etc\nfile\nfolder\nhost\npipe\n");
  });
});

describe("ranges", () => {
  let door: Door;
  const bytes = randomBytes(3 * MIB);
  beforeAll(async () => {
    door = await openDoor({ withAuth: false });
    await put(door, "large", bytes);
    await put(door, "ten", "0123456789");
  });

  test.each([
    ["bytes=0-3", "0123", "bytes 0-3/10"],
    ["bytes=8-", "89", "bytes 8-9/10"],
    ["bytes=-3", "789", "bytes 7-9/10"],
    ["bytes=5-99", "56789", "bytes 5-9/10"],
    ["bytes=-99", "0123456789", "bytes 0-9/10"],
  ])("%s gives a part", async (range, text, contentRange) => {
    const response = await get(door, "ten", { range });
    expect([response.status, await response.text()]).toEqual([206, text]);
    expect(response.headers.get("content-range")).toBe(contentRange);
  });

  test.each(["bytes=5-2", "bytes=0-1,3-4", "lines=1-2", "bytes=-"])("%s counts as none", async (range) => {
    const response = await get(door, "ten", { range });
    expect([response.status, await response.text()]).toEqual([200, "0123456789"]);
  });

  test.each(["bytes=10-", "bytes=-0"])("%s is 416 with the size", async (range) => {
    const response = await get(door, "ten", { range });
    expect([response.status, response.headers.get("content-range")]).toEqual([416, "bytes */10"]);
  });

  test("a range over several pages of a large file is the right one", async () => {
    const response = await get(door, "large", { range: `bytes=1000-${2 * MIB + 5}` });
    expect(response.status).toBe(206);
    expect(await digestOf(response)).toBe(digest(bytes.subarray(1000, 2 * MIB + 6)));
  });

  test("with If-Range the whole is sent, since there is nothing to compare it with", async () => {
    const response = await get(door, "ten", { range: "bytes=0-1", "if-range": '"x"' });
    expect([response.status, await response.text()]).toEqual([200, "0123456789"]);
  });
});

describe("at the same time", () => {
  test("readers and writers of one file see whole versions or a cut connection, never a mixture", async () => {
    const door = await openDoor({ withAuth: false });
    const versions = Array.from({ length: 4 }, () => randomBytes(3 * MIB));
    const known = new Set(versions.map(digest));
    await put(door, "shared", versions[0]!);
    const writes = versions.map((version) => put(door, "shared", version));
    const reads = Array.from({ length: 8 }, async () => {
      const response = await get(door, "shared");
      return digestOf(response).catch(() => "cut");
    });
    expect((await Promise.all(writes)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    for (const seen of await Promise.all(reads)) expect(seen === "cut" || known.has(seen)).toBe(true);
    expect(known).toContain(await digestOf(await get(door, "shared")));
    expect(await shell(door, "ls -A")).toBe("shared\n");
  });

  test("a file that is written to while it is read is cut off, not passed as whole", async () => {
    const door = await openDoor({ withAuth: false });
    await shell(door, "head -c 64M /dev/zero > growing");
    const response = await get(door, "growing");
    const reader = response.body!.getReader();
    await reader.read();
    await shell(door, "printf x | dd of=growing conv=notrunc status=none");
    const drained = (async () => {
      while (!(await reader.read()).done);
    })();
    await expect(drained).rejects.toThrow("terminated");
  });
});

describe("a client that vanishes", () => {
  test("in the middle of a PUT leaves the old file and no part, and lets the sandbox go", async () => {
    const door = await openDoor({ withAuth: false });
    await put(door, "kept", "old");
    const asked = httpRequest(urlOf(door, "kept"), { method: "PUT", headers: { "content-length": String(64 * MIB) } });
    asked.on("error", () => undefined);
    asked.write(randomBytes(5 * MIB));
    await until(
      () => shell(door, "ls -A"),
      (listed) => listed.includes(".part"),
    );
    const before = door.server.log.length;
    asked.destroy();
    await until(
      () => shell(door, "ls -A"),
      (listed) => listed === "kept\n",
    );
    expect(await (await get(door, "kept")).text()).toBe("old");
    await until(
      () => door.server.log.slice(before).some(({ outcome }) => outcome === "client gone"),
      (isLogged) => isLogged,
    );
    expect(await stateOf(door)).toBe("ready");
  });

  test("in the middle of a GET lets the sandbox go", async () => {
    const door = await openDoor({ withAuth: false });
    await shell(door, "head -c 64M /dev/zero > large");
    const abort = new AbortController();
    const response = await fetch(urlOf(door, "large"), { signal: abort.signal });
    await response.body!.getReader().read();
    expect(await stateOf(door)).toBe("busy");
    abort.abort();
    expect(
      await until(
        () => stateOf(door),
        (state) => state === "ready",
      ),
    ).toBe("ready");
  });
});

async function stateOf({ client, sessionId }: Door): Promise<string | undefined> {
  const listed = (await call(client, "sandbox_list")).structuredContent as {
    sandboxes: { session_id: string; state: string }[];
  };
  return listed.sandboxes.find(({ session_id }) => session_id === sessionId)?.state;
}

test("100 MiB pass through a server whose memory grows by less than their size", async () => {
  const door = await openDoor({ withAuth: false, own: new Server(makePlace(), {}) });
  const before = peakMib(door);
  const page = randomBytes(MIB);
  async function* pages(): AsyncGenerator<Uint8Array> {
    for (let sent = 0; sent < 100; sent += 1) yield page;
  }
  const response = await fetch(urlOf(door, "huge"), {
    method: "PUT",
    body: ReadableStream.from(pages()),
    duplex: "half",
  });
  expect(response.status).toBe(201);
  let bytes = 0;
  for await (const chunk of (await get(door, "huge")).body!) bytes += (chunk as Uint8Array).length;
  expect(bytes).toBe(100 * MIB);
  expect(peakMib(door) - before).toBeLessThan(100);
});

/** The most memory that the server ever used. */
function peakMib({ server }: Door): number {
  const status = readFileSync(`/proc/${server.child.pid}/status`, "utf8");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}
