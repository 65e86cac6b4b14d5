import { expect, onTestFinished, test, vi } from "vitest";
import { type Inside, openInside, textOf } from "../escape/sandbox-lab.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { engineLab, PATIENCE } from "./engine-lab.ts";
import { containers } from "./engine-runtime.ts";

const MAX_PROCESSES = 2 * 256;

/** One of each kind, since each takes its time; all of them are in test/long. */
export function defineFloodTest(engine: () => ContainerEngine): void {
  const lab = engineLab(engine);

  test("what takes everything takes it from its own sandbox alone: processes, memory, /tmp and the workspace", async () => {
    const { client, server } = await lab.open();
    onTestFinished(async () => void (await server.stop()));
    const witness = await openInside(client);
    await witness.python("kept = 41");
    const during = async (inside: Inside, command: string): Promise<string> => {
      const attack = inside.call("shell_exec", { command, timeout_seconds: 55 });
      expect(await witness.python("print(kept + 1)")).toBe("42\n");
      return textOf(await attack);
    };

    const forks = await openInside(client);
    await forks.call("shell_exec", { command: "b() { b | b & }; b; sleep 60", timeout_seconds: 1 });
    expect(containers(engine).processes(server).length).toBeLessThan(MAX_PROCESSES);
    await answers(forks);

    const hog = await openInside(client);
    expect(await during(hog, "python3 -c 'a = []\nwhile True: a.append(bytearray(1 << 24))'; echo $?")).toMatch(
      /137|ended/,
    );
    await answers(hog);

    const full = await openInside(client);
    await during(full, "head -c 700M /dev/zero > /tmp/big");
    expect(Number(await full.sh("stat -c %s /tmp/big || echo 0"))).toBeLessThan(700 * 1024 * 1024);
    await full.call("shell_exec", { command: "rm -f /tmp/big" });
    expect(await during(full, "for n in 1 2 3; do fallocate -l 900M part$n; done; sleep 60")).toContain(
      "it wrote more than its flavor allows",
    );
    expect(await witness.python("print(kept)")).toBe("41\n");
  });
}

/** A sandbox that was ended for what it did is started again by the next call. */
async function answers(inside: Inside): Promise<void> {
  await vi.waitFor(async () => expect(await inside.sh("echo alive")).toBe("alive\n"), PATIENCE);
}
