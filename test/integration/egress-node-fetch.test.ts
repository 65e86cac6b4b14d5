import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { build } from "esbuild";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { egressEnv } from "../../src/sandbox/network/egress.ts";
import { wholeBody } from "../services/whole-body.ts";
import { startForwarder } from "./egress/forwarder.ts";
import { openLoopbackDoor } from "./egress/loopback-listener.ts";
import { type Site, startSite } from "./egress/stand-in-site.ts";

let preload: string;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "owlclaw-test-"));
  preload = join(folder, "proxy-preload.cjs");
  const source = join(import.meta.dirname, "../../guest/node/proxy-preload.ts");
  await build({ entryPoints: [source], outfile: preload, bundle: true, platform: "node", format: "cjs" });
});

afterAll(async () => await rm(dirname(preload), { recursive: true, force: true }));

async function startSites(): Promise<{ plain: Site; secure: Site }> {
  const answer: Parameters<typeof startSite>[0] = (request, response) => {
    const url = new URL(request.url ?? "/", "http://site.test");
    const to = url.searchParams.get("to");
    if (to !== null) return void response.writeHead(302, { Location: to }).end();
    if (url.pathname === "/endless") return void response.write("first");
    void wholeBody(request).then((body) => {
      if (body !== undefined) response.end(`${request.method} ${request.headers.host} ${url.pathname} (${body})`);
    });
  };
  return { plain: await startSite(answer), secure: await startSite(answer, { isSecure: true }) };
}

/** Runs a module as a program inside a sandbox would run, and gives what it prints, line by line. */
async function runInside(code: string): Promise<{ lines: readonly string[]; plain: Site; secure: Site }> {
  const { plain, secure } = await startSites();
  const listener = await openLoopbackDoor([plain.port, secure.port]);
  const port = await startForwarder(listener.socketPath);
  const env = {
    ...egressEnv({ port, nodePreload: preload }),
    PLAIN: `http://site.test:${plain.port}`,
    SECURE: `https://site.test:${secure.port}`,
    INSIDE: `http://127.0.0.1:${plain.port}`,
    NODE_TLS_REJECT_UNAUTHORIZED: "0",
    NODE_NO_WARNINGS: "1",
  };
  const script = `const { PLAIN, SECURE, INSIDE } = process.env;\n${code}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], { env });
  const [out, errors] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { lines: `${out}${errors}`.trim().split("\n"), plain, secure };
}

describe("fetch of a program inside goes through the door", () => {
  test("for http and https", async () => {
    const { lines, plain, secure } = await runInside(`
      for (const site of [PLAIN, SECURE]) console.log(await (await fetch(site + "/a")).text());
    `);
    expect(lines).toEqual([`GET site.test:${plain.port} /a ()`, `GET site.test:${secure.port} /a ()`]);
  });

  test("with one connection for several requests", async () => {
    const { lines, plain, secure } = await runInside(`
      for (const site of [PLAIN, SECURE, PLAIN, SECURE]) console.log((await (await fetch(site)).text()).length > 0);
    `);
    expect(lines).toEqual(["true", "true", "true", "true"]);
    expect([plain.connections(), secure.connections()]).toEqual([1, 1]);
  });

  test("with redirects, also to another scheme, and a forbidden one is refused with the proxy's words", async () => {
    const { lines, secure } = await runInside(`
      console.log(await (await fetch(PLAIN + "/?to=" + encodeURIComponent(SECURE + "/b"))).text());
      await fetch(PLAIN + "/?to=http://forbidden.test/").catch((error) => console.log(error.cause.message));
    `);
    expect(lines[0]).toBe(`GET site.test:${secure.port} /b ()`);
    expect(lines[1]).toContain("egress refused: forbidden.test:80 is not in network.allow");
  });

  test("with streams up and down, and an abort in the middle", async () => {
    const { lines, plain } = await runInside(`
      const body = new ReadableStream({ start(stream) {
        for (const part of ["one ", "two"]) stream.enqueue(new TextEncoder().encode(part));
        stream.close();
      } });
      console.log(await (await fetch(PLAIN + "/up", { method: "POST", body, duplex: "half" })).text());
      const control = new AbortController();
      const reader = (await fetch(SECURE + "/endless", { signal: control.signal })).body.getReader();
      console.log(new TextDecoder().decode((await reader.read()).value));
      control.abort();
      await reader.read().catch((error) => console.log(error.name));
    `);
    expect(lines).toEqual([`POST site.test:${plain.port} /up (one two)`, "first", "AbortError"]);
  });

  test("though the program has made requests and headers of its own before", async () => {
    const { lines, plain } = await runInside(`
      const request = new Request(PLAIN + "/made", { headers: new Headers() });
      console.log(await (await fetch(request)).text());
    `);
    expect(lines).toEqual([`GET site.test:${plain.port} /made ()`]);
  });

  test("but not past an agent that the program has chosen itself", async () => {
    const { lines } = await runInside(`
      const agent = { dispatch: (_options, handler) => handler.onError(new Error("my own")) };
      globalThis[Symbol.for("undici.globalDispatcher.1")] = agent;
      await fetch(PLAIN).catch((error) => console.log(error.cause.message));
    `);
    expect(lines).toEqual(["my own"]);
  });

  test("but not to servers inside the sandbox itself", async () => {
    const { lines, plain } = await runInside(`console.log(await (await fetch(INSIDE + "/in")).text());`);
    expect(lines).toEqual([`GET 127.0.0.1:${plain.port} /in ()`]);
  });
});

test("http.get and https.get of a program inside go through the door", async () => {
  const { lines, plain, secure } = await runInside(`
    import http from "node:http";
    import { get } from "node:https";
    import { text } from "node:stream/consumers";
    for (const ask of [(done) => http.get(PLAIN + "/h", done), (done) => get(SECURE + "/s", done)]) {
      console.log(await text(await new Promise((done, fail) => ask(done).on("error", fail))));
    }
    http.get("http://forbidden.test/").on("error", (error) => console.log(error.message));
  `);
  expect(lines.slice(0, 2)).toEqual([`GET site.test:${plain.port} /h ()`, `GET site.test:${secure.port} /s ()`]);
  expect(lines[2]).toContain("egress refused: forbidden.test:80");
});
