import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { openInside, textOf } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { engineLab, PATIENCE } from "./engine-lab.ts";

/** Which images serve, and what is started from them and when. */
export function defineImageSuite(engine: () => ContainerEngine): void {
  const { open, containersOf } = engineLab(engine);

  test("waiting sandboxes are containers too, and one is there at once", async () => {
    const { place, server, client } = await open({ pool: { size: 1 } });
    await vi.waitFor(async () => expect(await containersOf(place)).toHaveLength(1), PATIENCE);
    await vi.waitFor(async () => {
      await openInside(client);
      expect(server.log.find((line) => line["message"] === "sandbox created" && line["warm"] === true)).toBeDefined();
    }, PATIENCE);
    expect(await server.stop()).toBe(0);
    expect(await containersOf(place, "-a")).toEqual([]);
  });

  test("a server whose image is missing says so, and serves when it is there", async () => {
    const { cli, image } = engine();
    const name = `${image}-later`;
    const { server, client, health } = await open({ image: name });
    await expect(call(client, "sandbox_create")).rejects.toThrow(`the engine has no image ${name}`);
    expect(await health()).toBe(503);
    await cli("tag", image, name);
    await vi.waitFor(async () => expect(await health()).toBe(200), PATIENCE);
    expect(await (await openInside(client)).sh("echo served")).toBe("served\n");
    await cli("rmi", name);
    await expect(call(client, "sandbox_create")).rejects.toThrow(`the engine has no image ${name}`);
    await vi.waitFor(async () => expect(await health()).toBe(503), PATIENCE);
    // Nobody asks for a sandbox in the meantime.
    await cli("tag", image, name);
    await vi.waitFor(async () => expect(await health()).toBe(200), PATIENCE);
    await server.stop();
  });

  test("an image without Chromium has every tool but the browser's, which say what is missing", async () => {
    const { server, client } = await open({});
    const inside = await openInside(client);
    const [head, hint] = textOf(await inside.call("browser_goto", { url: "http://localhost:3000/" })).split("\n");
    expect(head).toBe("browser_goto failed: there is no Chromium in the sandbox");
    expect(hint).toContain("where sandboxes are containers, in their image");
    expect(await inside.sh("echo goes on")).toBe("goes on\n");
    await server.stop();
  });

  test("an image on musl is refused in clear words", async () => {
    const { cli, folder, image } = engine();
    const tree = join(folder, "musl");
    mkdirSync(join(tree, "lib"), { recursive: true });
    mkdirSync(join(tree, "bin"));
    const made = await cli("create", image, "true");
    await cli("cp", `${made}:/bin/busybox`, join(tree, "bin", "sh"));
    await cli("rm", made);
    writeFileSync(join(tree, "lib", "ld-musl-x86_64.so.1"), "");
    const { promisify } = await import("node:util");
    const { execFile } = await import("node:child_process");
    await promisify(execFile)("tar", ["-cf", `${tree}.tar`, "-C", tree, "."]);
    await cli("import", `${tree}.tar`, "musl");
    const { server, client } = await open({ image: image.replace("base", "musl") });
    await expect(call(client, "sandbox_create")).rejects.toThrow("it is built on musl (Alpine)");
    await server.stop();
  });

  describe("a template may have a runtime and an image of its own,", () => {
    test("beside bubblewrap, on an engine that has no image but that one", async () => {
      const { image, host } = engine();
      const templates = { boxed: { image }, node: { runtime: "docker" } };
      const sandbox = { runtime: "bubblewrap", image: "nowhere", docker: { host }, templates };
      const { place, server, client } = await open(sandbox);
      const [usual, boxed] = [await openInside(client), await openInside(client, { template: "boxed" })];
      const isContainer = "cat /proc/1/cmdline | grep -c guest.mjs";
      expect(await usual.sh("readlink /proc/1/exe; cat /etc/hostname")).toContain("sandbox");
      expect(await boxed.sh(isContainer)).toBe("1\n");
      expect(await containersOf(place)).toHaveLength(1);
      expect(textOf(await boxed.call("code_run", { code: "6 * 7" }))).toContain("42");
      await expect(call(client, "sandbox_create", { template: "node" })).rejects.toThrow("has no image nowhere");
      await server.stop();
      expect(await containersOf(place, "-a")).toEqual([]);
    });

    test("and when that image is gone, health says which template is without", async () => {
      const { image, host, cli } = engine();
      const name = `${image}-boxed`;
      await cli("tag", image, name);
      // One before it has an image that stays.
      const templates = { another: { image }, boxed: { image: name } };
      const { server, client, origin } = await open({ runtime: "bubblewrap", docker: { host }, templates });
      const runtime = async (): Promise<unknown> =>
        ((await (await fetch(`${origin}/health`)).json()) as { checks: Record<string, unknown> }).checks["runtime"];
      await openInside(client, { template: "boxed" });
      await cli("rmi", name);
      await expect(call(client, "sandbox_create", { template: "boxed" })).rejects.toThrow("has no image");
      const told = { status: "degraded", message: "sandboxes of boxed cannot start: the image is missing" };
      await vi.waitFor(async () => expect(await runtime()).toMatchObject(told), PATIENCE);
      await openInside(client);
      await cli("tag", image, name);
      await vi.waitFor(async () => expect(await runtime()).toMatchObject({ status: "ok" }), PATIENCE);
      await server.stop();
    });
  });

  test("an OCI runtime that the engine does not have is told of at the start", async () => {
    const { server, health } = await open({ docker: { host: engine().host, runtime: "owlclaw-none" } });
    await vi.waitFor(async () => expect(await health()).toBe(503), PATIENCE);
    const { reason, hint } = await server.logged("sandboxes are not available");
    expect(`${String(reason)} ${String(hint)}`).toContain("owlclaw-none");
    await server.stop();
  });
}
