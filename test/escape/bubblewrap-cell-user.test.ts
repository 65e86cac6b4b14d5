import { afterEach, expect, it } from "vitest";
import { type Lab, openLab } from "./bubblewrap-cells.ts";
import { defineCellSuite } from "./bubblewrap-cell-suite.ts";

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

it("ends a cell whose workspace grew past its limit", async () => {
  lab = await openLab();
  const inside = await lab.start();
  inside.send("bash", "-c", "for n in 1 2 3 4; do head -c 30M /dev/zero > part$n; done; sleep 1000");
  expect(await inside.cell.exited).toMatchObject({ reason: "disk" });
});
