import { rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openInside } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { engineLab } from "./engine-lab.ts";

/** What the seed's table says: each tool, the method of the guest that does it, and arguments. */
const TOOLS: Readonly<Record<string, readonly [method: string, args: Record<string, unknown>]>> = {
  browser_goto: ["browser.goto", { url: "http://localhost:8000/" }],
  browser_click: ["browser.click", { selector: "ref_1" }],
  browser_type: ["browser.type", { selector: "ref_1", text: "word" }],
  browser_snapshot: ["browser.snapshot", {}],
  code_run: ["code.run", { language: "python", code: "6 * 7" }],
  file_write: ["file.write", { path: "kept.txt", content: "kept" }],
  file_read: ["file.read", { path: "kept.txt" }],
  file_list: ["file.list", {}],
};
const METHOD = /"method":"([a-z]+\.[a-z]+)"/gi;

interface Recorder {
  /** For `sandbox.docker.host`. */
  readonly host: string;
  /** Methods of the guest that were asked for since the last look, in order. */
  take(): string[];
}

/** Stands between a server and its engine, and writes down what the server sends to guests. */
async function record({ host, folder }: ContainerEngine): Promise<Recorder> {
  let sent = "";
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const far = connect({ path: host.slice("unix://".length), allowHalfOpen: true });
    near.on("data", (chunk: Buffer) => (sent += chunk.toString("latin1")));
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on("error", () => (near.destroy(), far.destroy()));
  });
  const path = join(folder, "recorded.sock");
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    server.close();
    rmSync(path, { force: true });
  });
  const take = (): string[] => {
    const methods = [...sent.matchAll(METHOD)].map(([, method = ""]) => method);
    sent = "";
    return methods;
  };
  return { host: `unix://${path}`, take };
}

/** The ten tools of the seed, on containers. */
export function defineRpcTest(engine: () => ContainerEngine): void {
  const { open, containersOf } = engineLab(engine);

  test("[002-list] [002-rpc] [002-docker] the ten tools are listed, two make and remove a container, and each of the others is one method of its guest", async () => {
    const recorder = await record(engine());
    const { place, server, client } = await open({ docker: { host: recorder.host } });
    const listed = new Map((await client.listTools()).tools.map((tool) => [tool.name, tool]));
    for (const name of ["sandbox_create", "sandbox_destroy", ...Object.keys(TOOLS)]) {
      const { description = "", inputSchema, outputSchema } = listed.get(name) ?? {};
      expect({ name, isDescribed: description.length > 80, in: inputSchema?.type, out: outputSchema?.type }).toEqual({
        name,
        isDescribed: true,
        in: "object",
        out: "object",
      });
    }
    const inside = await openInside(client);
    expect(await containersOf(place)).toHaveLength(1);
    expect(recorder.take()).toEqual(["guest.hello"]);
    for (const [name, [method, args]] of Object.entries(TOOLS)) {
      // The image has no Chromium: the browser's answer is that, and comes from inside all the same.
      await inside.call(name, args);
      expect({ name, methods: recorder.take() }).toEqual({ name, methods: [method] });
    }
    await inside.call("sandbox_destroy");
    expect(recorder.take()).toEqual([]);
    expect(await containersOf(place, "-a")).toEqual([]);
    await server.stop();
  });
}
