import { expect, it } from "vitest";
import { becomeOrdinaryUser, openLab } from "./bubblewrap-instances.ts";

becomeOrdinaryUser();

/**
 * Where no file system limits a workspace, it is measured by a walk through its folders. A folder that is moved while the
 * walk is deep inside ends the walk without a result.
 */
const MOVING = `
import os
chains = range(150)
for chain in chains:
    path = f"p/m{chain}" + "/x" * 12
    os.makedirs(path)
    for n in range(8): os.mkdir(f"{path}/d{n}")
os.mkdir("q")
print("moving", flush=True)
while True:
    for chain in chains: os.rename(f"p/m{chain}", f"q/m{chain}")
    for chain in chains: os.rename(f"q/m{chain}", f"p/m{chain}")
`;

/** Twice as much as the workspace may hold, once folders are moved all the time. */
const FILL = `python3 -c '${MOVING}' > moving & until [ -s moving ]; do :; done; head -c 120M /dev/zero > big; sleep 1000`;

it("ends a cell that moves its folders all the time so that it cannot be measured", async () => {
  const lab = await openLab();
  const inside = await lab.start();
  inside.send("bash", "-c", FILL);
  expect(await inside.cell.exited).toMatchObject({ reason: "disk" });
  await lab.close();
});

it("measures the others beside it, and ends none of them", async () => {
  const lab = await openLab();
  const [moving, honest] = [await lab.start(), await lab.start()];
  moving.send("bash", "-c", FILL);
  await moving.cell.exited;
  expect((await honest.run("echo", "there")).stdout).toBe("there\n");
  honest.send("bash", "-c", "head -c 120M /dev/zero > big; sleep 1000");
  expect(await honest.cell.exited).toMatchObject({ reason: "disk" });
  await lab.close();
});
