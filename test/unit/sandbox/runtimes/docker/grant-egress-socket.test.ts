import { statSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { grantEgressSocket } from "../../../../../src/sandbox/runtimes/docker/start-container.ts";
import { temporaryFolder } from "../../../config/temporary-folder.ts";

const UID = 1_000_000_007;

async function door(): Promise<string> {
  const path = join(temporaryFolder(), "door.sock");
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => void server.close());
  return path;
}

const isRoot = process.getuid?.() === 0;

test("root gives a sandbox's door to the sandbox's user", async (context) => {
  if (!isRoot) context.skip("only root can give a file to somebody else");
  const path = await door();
  await grantEgressSocket(path, UID, { mapsUsers: false });
  expect(statSync(path)).toMatchObject({ uid: UID, gid: UID });
});

test("where the engine maps users, whoever the sandbox's user is on this machine can use it", async () => {
  const path = await door();
  await grantEgressSocket(path, 1000, { mapsUsers: true });
  expect(statSync(path)).toMatchObject({ uid: process.getuid?.() });
  expect(statSync(path).mode & 0o777).toBe(0o666);
});
