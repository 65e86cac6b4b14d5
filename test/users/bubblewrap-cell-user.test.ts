import { afterEach, expect, it } from "vitest";
import { type Lab, openLab } from "../escape/bubblewrap-instances.ts";
import { defineCellSuite } from "../escape/bubblewrap-cell-suite.ts";

defineCellSuite("user");

let lab: Lab | undefined;
afterEach(async () => await lab?.close());

it("does not start where limits are required and cannot be kept, and says what to do", async () => {
  lab = await openLab({ limits: "required" });
  await expect(lab.start()).rejects.toMatchObject({
    kind: "resource_limit",
    retryable: false,
    hint: expect.stringContaining("best-effort"),
  });
});

/** Each takes twice as much as the workspace may hold. */
const FILLS = {
  "one file after the other": "for n in 1 2 3 4; do head -c 30M /dev/zero > part$n; done; echo full",
  "files in folders below": "for n in 1 2 3 4; do mkdir -p a/$n/b; head -c 30M /dev/zero > a/$n/b/c; done; echo full",
  "room that is only reserved": "for n in 1 2 3 4; do fallocate -l 30M part$n; done; echo full",
};

it.concurrent.each(Object.entries(FILLS))(
  "ends a cell whose workspace grew past its limit with %s, and none that nobody watches",
  async (_name, command) => {
    const [watched, unwatched] = [await openLab(), await openLab({ off: ["disk-image"] })];
    const [inside, beside] = [await watched.start(), await unwatched.start()];
    expect((await beside.run("bash", "-c", command)).stdout).toBe("full\n");
    inside.send("bash", "-c", `${command}; sleep 1000`);
    expect(await inside.cell.exited).toMatchObject({ reason: "disk" });
    expect((await beside.run("du", "-sm", ".")).stdout).toMatch(/^12\d\t/);
    await Promise.all([watched.close(), unwatched.close()]);
  },
);
