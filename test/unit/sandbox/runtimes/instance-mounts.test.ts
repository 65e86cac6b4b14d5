import { expect, test } from "vitest";
import { volumeMounts } from "../../../../src/sandbox/runtimes/instance-mounts.ts";
import { temporaryFolder } from "../../config/temporary-folder.ts";

const mountAt = async (guestPath: string): Promise<unknown> => {
  const volumes = [{ hostPath: temporaryFolder(), guestPath, isReadOnly: true }];
  const empty = { file: "/data-of-the-server/empty/file", folder: "/data-of-the-server/empty/folder" };
  return await volumeMounts({ volumes, workspacePath: "/workspace", dataFolder: "/data-of-the-server", empty });
};

test.each(["/opt", "/opt/owlclaw", "/opt/owlclaw/x", "/opt/owlclaw-node", "/opt/owlclaw-node/x"])(
  "no volume takes the place of the guest and of Node, as at %s",
  async (guestPath) => {
    await expect(mountAt(guestPath)).rejects.toThrow(`the volume cannot be mounted at ${guestPath}`);
  },
);

test.each(["/data", "/opt/data", "/opt/owlclaw-notes"])("a volume can be at %s", async (guestPath) => {
  expect(await mountAt(guestPath)).toMatchObject([{ guestPath }]);
});
