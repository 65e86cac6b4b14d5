import { expect, test, vi } from "vitest";
import { readText } from "../e2e/sandbox-client.ts";
import { type Inside, textOf } from "../escape/sandbox-lab.ts";
import type { MicrosandboxLab } from "./microsandbox-suite.ts";

/** An emulated machine takes its time. */
const PATIENCE = { timeout: 300_000, interval: 500 };
const HOG = `kept = []
while True:
    kept.append(b"x" * (32 << 20))
    print(32 * len(kept), flush=True)`;

/** In a sandbox of the template that may reach `good.test`. */
export function defineEgressTest(inside: () => Inside): void {
  test("programs in a microVM reach an allowed host through the proxy, and no other", async () => {
    expect(await inside().sh("ls /sys/class/net")).toBe("lo\n");
    const read = await inside().python(`
import urllib.request, urllib.error
def get(url):
    try: return urllib.request.urlopen(url).read()
    except urllib.error.HTTPError as error: return error.read()
print(get("http://good.test/"), len(get("http://good.test/large.bin")), get("http://bad.test/"))`);
    expect(read).toMatch(/^b'hello from outside' 1000000 b'egress refused: bad\.test:80 is not in network\.allow/);
  });
}

export function defineMemoryTest(inside: () => Inside): void {
  test("who takes more memory than his machine has is ended for it, and the next call works", async () => {
    const hog = await inside().call("code_run", { code: HOG, language: "python", timeout_seconds: 240 });
    const { head, json } = readText(hog);
    expect(head).toBe(
      "code_run failed: the python interpreter was ended by SIGKILL; its variables are gone, and the next call starts a fresh one",
    );
    expect(textOf(hog)).toContain("\nhint: use less memory ");
    const takenMb = Number(String(json["stdout"]).trim().split("\n").at(-1));
    const wholeMb = Number(await inside().sh("awk '/^MemTotal/ { print $2 / 1024 }' /proc/meminfo"));
    expect(wholeMb).toBeLessThanOrEqual(1024);
    expect(takenMb).toBeLessThan(wholeMb);
    expect(takenMb).toBeGreaterThan(wholeMb / 2);
  });
}

export function defineRestartTest(inside: () => Inside): void {
  test("a machine in which everything was killed runs again, on the same files", async () => {
    const bootId = await inside().sh("cat /proc/sys/kernel/random/boot_id; echo kept > kept.txt");
    const killed = await inside().call("shell_exec", { command: "kill -9 -1; sleep 5" });
    expect(textOf(killed)).toContain('"sandbox_restarted":true');
    expect(await inside().sh("cat kept.txt")).toBe("kept\n");
    expect(await inside().sh("cat /proc/sys/kernel/random/boot_id")).not.toBe(bootId);
  });
}

/** What the host has of microVMs, counted. */
export async function heldFor({ place }: MicrosandboxLab): Promise<Record<string, number>> {
  const { machines, sandboxes, folders, sockets } = await place.ask("facts");
  return { machines, sandboxes: sandboxes.length, folders: folders.length, sockets: sockets.length };
}

/** Waits until the host has no more than `before`. */
export async function untilGone(lab: MicrosandboxLab, before: Record<string, number>): Promise<void> {
  await vi.waitFor(async () => expect(await heldFor(lab)).toEqual(before), PATIENCE);
}
