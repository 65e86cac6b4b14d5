import { spawnSync } from "node:child_process";
import { describe, expect, test } from "vitest";
import { BIN, makePlace, writeConfig } from "../e2e/sandbox-client.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { settingsFor } from "./engine-runtime.ts";

interface Check {
  readonly name: string;
  readonly status: string;
  readonly message: string;
  readonly fix?: string;
}

const SHUT = expect.stringMatching(
  /^(\d+) of \1 ways out that were tried are shut; a sandbox starts in \d+ ms$/,
) as unknown;

const ALL_BUT_ONE = expect.stringMatching(
  /^17 of 18 ways out that were tried are shut; a sandbox starts in \d+ ms$/,
) as unknown;

function doctor(sandbox: Record<string, unknown>): (name: string) => Check | undefined {
  const place = makePlace();
  const config = writeConfig(place, { sandbox, tools: { toolsets: ["code"] } });
  const args = [BIN, "mcp-server", "doctor", "--json", "--config", config];
  const checks = JSON.parse(
    spawnSync(process.execPath, args, { encoding: "utf8", cwd: place.folder }).stdout,
  ) as Check[];
  return (name) => checks.find((check) => check.name === name);
}

/** What the doctor says of an engine. */
export function defineDoctorSuite(engine: () => ContainerEngine): void {
  describe("the doctor", () => {
    test("tries every runtime, measures its start, and says which one is taken", async () => {
      const { image, host, cli } = engine();
      const before = await cli("ps", "-aq");
      const find = doctor({ image, docker: { host } });
      expect(find("runtime bubblewrap")).toMatchObject({ status: "ok", message: SHUT });
      expect(find("runtime docker")).toMatchObject({
        status: "warning",
        message: expect.stringContaining("no file system limits the workspace") as unknown,
      });
      expect(find("runtime")).toMatchObject({ status: "ok", message: "auto takes bubblewrap" });
      expect(find("mode")).toMatchObject({ status: "ok", message: expect.stringMatching(/Linux as root$/) as unknown });
      expect(await cli("ps", "-aq")).toBe(before);
    });

    test("tries the image of a template where no sandbox has the usual one", () => {
      const { image, host } = engine();
      const find = doctor({
        image: "nowhere",
        docker: { host },
        limits: "best-effort",
        templates: { boxed: { image } },
      });
      expect(find("runtime docker")).toMatchObject({ status: "warning", message: ALL_BUT_ONE });
      expect(find("workspace-limit")).toMatchObject({ status: "warning" });
    });

    test("says what to do when the image is missing, or the engine that is asked for is away", () => {
      const missing = doctor({ ...settingsFor(engine()), image: "nowhere" });
      expect(missing("runtime docker")).toMatchObject({
        status: "failed",
        message: "the engine has no image nowhere",
        fix: expect.stringContaining("docker build -t nowhere") as unknown,
      });
      expect(missing("runtime")).toMatchObject({ status: "failed" });
      // Nobody asked for it.
      expect(missing("runtime bubblewrap")).toMatchObject({ status: "ok" });
      const away = doctor({ runtime: "docker", docker: { host: "unix:///nowhere.sock" } });
      expect(away("runtime docker")).toMatchObject({
        status: "failed",
        message: "the container engine at /nowhere.sock cannot be reached: nothing listens there",
        fix: expect.stringContaining("Start Docker or Podman") as unknown,
      });
      const passed = doctor({ docker: { host: "unix:///nowhere.sock" } });
      expect(passed("runtime docker")).toMatchObject({ status: "warning" });
      expect(passed("runtime")).toMatchObject({ status: "ok", message: "auto takes bubblewrap" });
    });
  });
}
