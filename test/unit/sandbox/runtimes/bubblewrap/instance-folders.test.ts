import { expect, test, vi } from "vitest";
import { InstanceFolders } from "../../../../../src/sandbox/runtimes/bubblewrap/instance-folders.ts";
import { SILENT_LOGGER } from "../../../../../src/telemetry/logger.ts";

test("a folder that is left is tried again until it is gone, and only then forgotten", async () => {
  const forgotten = vi.fn<() => Promise<void>>(async () => await Promise.resolve());
  const remove = vi.fn<() => Promise<void>>(async () => await Promise.resolve());
  remove.mockRejectedValueOnce(new Error("EACCES")).mockRejectedValueOnce(new Error("EACCES"));
  const folders = new InstanceFolders({ logger: SILENT_LOGGER, remove, tryAgainMs: 1 });
  expect(await folders.remove("/a", forgotten)).toBe(false);
  expect(folders.left).toBe(1);
  expect(forgotten).not.toHaveBeenCalled();
  await vi.waitFor(() => expect(folders.left).toBe(0));
  expect(remove).toHaveBeenCalledTimes(3);
  expect(forgotten).toHaveBeenCalledTimes(1);
  folders.close();
});
