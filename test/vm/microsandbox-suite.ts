import type { Client } from "@modelcontextprotocol/client";
import { expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import type { Inside } from "../escape/sandbox-lab.ts";
import { describeUnless } from "../setup/mandatory.ts";
import { whyNoMachine } from "./machine.ts";
import { CANARY, connectPatiently, keptPlace, portsOf } from "./kept-lab.ts";
import type { KeptPlace } from "./kept-place.ts";
import { startMicrosandboxPlace } from "./microsandbox-place.ts";

export interface MicrosandboxLab {
  readonly place: KeptPlace;
  connect(): Promise<Client>;
  /** Two ports of the machine that somebody listens on. */
  ports(): Promise<readonly number[]>;
}

/** Tests with servers of their own, which start before the first and end after the last of them. */
export async function describeWithMicrosandbox(define: (lab: () => MicrosandboxLab) => void): Promise<void> {
  describeUnless(await whyNoMachine(), "with microVMs", () => {
    let said = "";
    const place = keptPlace(async () => {
      const say = (line: string): void => {
        said = line;
        process.stderr.write(`${line}\n`);
      };
      return await startMicrosandboxPlace({ canary: CANARY, say, way: process.env["OWLCLAW_TEST_MICROVMS"] });
    });

    test("they boot on this machine itself, or it is said why not", () => {
      expect(said).toMatch(
        /^microVMs boot (on this machine itself$|in a machine that is emulated: (microsandbox cannot run sandboxes here: a microVM does not start here: |that is what was asked for$))/,
      );
    });

    define(() => ({
      place: place(),
      connect: async () => await connectPatiently(place(), "microsandbox"),
      ports: () => Promise.resolve(portsOf(place(), "microsandbox")),
    }));
  });
}

/** What only a microVM has; in one sandbox, since each takes ten seconds there. */
export function defineMachineTests(lab: () => MicrosandboxLab, inside: () => Inside): void {
  test("a machine of its own for each sandbox, and nothing that was said is written down by microsandbox", async () => {
    expect(await inside().sh(`echo ${CANARY} is a secret; uname -r`)).toMatch(/^canary-\w+ is a secret\n6\./);
    const { machines, sandboxes, logs } = await lab().place.ask("facts");
    expect(machines).toBeGreaterThan(0);
    expect(sandboxes.every((name) => name.startsWith("owlclaw-"))).toBe(true);
    expect(JSON.stringify(logs)).not.toContain(CANARY);
  });

  test("a volume is the folder of the host", async () => {
    expect(await inside().sh("cat /workspace2/secret.txt; echo from inside > /workspace2/made.txt")).toBe(CANARY);
    expect(await lab().place.ask("facts")).toMatchObject({ written: "from inside\n" });
  });

  test("files and processes of the host and of the machine's own system are out of reach", async () => {
    const { place, volume, job } = lab().place.order;
    const seen = await inside().sh(`
      for file in ${place}/microsandbox.json ${place}/data ${volume} ${job} /.msb/rootfs/upperfs /proc/1/root /proc/1/environ /dev/vda /dev/mem /dev/kvm /dev/vsock /etc/shadow
      do ls -d $file/. > /dev/null 2>&1 && ls $file > /dev/null 2>&1 && echo "opened $file"; cat $file > /dev/null 2>&1 && echo "read $file"; done
      env | grep -c ${CANARY}; ls /proc | grep -c '^[0-9]'; id -u; touch /usr/x /etc/x /x /sys/x /opt/owlclaw/x /opt/owlclaw-node/x 2> /dev/null && echo written
      ls /proc/sys/kernel/core_pattern && echo '|/x' 2> /dev/null > /proc/sys/kernel/core_pattern && echo core; grep -c msb /proc/[0-9]*/comm`);
    expect(seen).not.toMatch(/opened|read|written|\ncore/);
    expect(seen).toMatch(/^0\n\d\n1000\n/);
  });
}

/** Last of all, while a sandbox is there: the server dies. */
export function defineKillTest(lab: () => MicrosandboxLab): void {
  test("after kill -9 nothing is left, other applications' machines are, and the next server works", async () => {
    const { place, connect } = lab();
    const before = await place.ask("foreign");
    expect(before.sandboxes).toContain("foreign");
    expect(before.machines).toBeGreaterThan(1);
    expect(before.folders).not.toEqual([]);
    const after = await place.ask("kill");
    expect(after.sandboxes).toEqual(["foreign"]);
    expect(after.folders).toEqual([]);
    expect(after.machines).toBe(1);
    const result = await call(await connect(), "code_run", { code: "print(6 * 7)" });
    expect(result.structuredContent).toMatchObject({ stdout: "42\n" });
  });
}
