import { expect, test } from "vitest";
import { makePlace, Server } from "../e2e/sandbox-client.ts";
import { settingsFor } from "./engine-runtime.ts";
import { describeWithEngine } from "./with-engine.ts";

describeWithEngine("docker", (engine) => {
  test("required limits are refused, since no file system limits volumes, and the reason says what to do", async () => {
    const server = new Server(makePlace(), { sandbox: { ...settingsFor(engine()), limits: "required" } });
    const answer = await fetch(new URL("/health", await server.url()));
    expect(answer.status).toBe(503);
    const said = server.log.find(({ message }) => message === "sandboxes are not available");
    expect(said).toMatchObject({
      reason: expect.stringContaining("no file system limits the workspace"),
      hint: expect.stringMatching(/bubblewrap as root or microVMs.*best-effort/),
    });
    await server.stop();
  });
});
