import type { Client } from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { call, connectHttp } from "../e2e/sandbox-client.ts";
import type { Inside } from "../escape/sandbox-lab.ts";
import { whyNoMachine } from "./machine.ts";
import { type MicrosandboxMachine, startMicrosandboxMachine } from "./microsandbox-machine.ts";

export const CANARY = `canary-${Math.random().toString(36).slice(2)}`;
/** Everything takes some fifty times as long in a machine that is emulated. */
const CALL_TIMEOUT_MS = 600_000;

export interface MicrosandboxLab {
  readonly machine: MicrosandboxMachine;
  connect(runtime: "microsandbox" | "bubblewrap"): Promise<Client>;
  /** Two ports of the machine that somebody listens on. */
  ports(runtime: "microsandbox" | "bubblewrap"): Promise<readonly number[]>;
}

/** Tests with a machine of their own, which is switched on before the first and off after the last of them. */
export async function describeWithMicrosandbox(define: (lab: () => MicrosandboxLab) => void): Promise<void> {
  const reason = await whyNoMachine();
  const note = reason === undefined ? "" : ` (${reason})`;
  describe.skipIf(reason !== undefined)(`in a machine whose processor is emulated${note},`, () => {
    let machine: MicrosandboxMachine | undefined;
    beforeAll(async () => {
      machine = await startMicrosandboxMachine(CANARY);
    });
    afterEach(({ task }) => {
      // Nobody sees the log of a machine that was switched off.
      if (task.result?.state === "fail" && machine !== undefined) process.stderr.write(`${machine.lastWords()}\n`);
    });
    afterAll(async () => await machine?.stop());
    define(() => {
      if (machine === undefined) throw new Error("the machine has not started");
      return labOf(machine);
    });
  });
}

function labOf(machine: MicrosandboxMachine): MicrosandboxLab {
  return {
    machine,
    connect: async (runtime) => {
      const client = await connectHttp(machine.urls[runtime]);
      const callTool = client.callTool.bind(client);
      client.callTool = (params, options) => callTool(params, { timeout: CALL_TIMEOUT_MS, ...options });
      return client;
    },
    ports: (runtime) => Promise.resolve([Number(new URL(machine.urls[runtime]).port), 9001]),
  };
}

/** What only a microVM has; in one sandbox, since each takes ten seconds there. */
export function defineMachineTests(lab: () => MicrosandboxLab, inside: () => Inside): void {
  test("a machine of its own for each sandbox, and nothing that was said is written down by microsandbox", async () => {
    expect(await inside().sh(`echo ${CANARY} is a secret; uname -r`)).toMatch(/^canary-\w+ is a secret\n6\./);
    const { machines, sandboxes, logs } = await lab().machine.ask("facts");
    expect(machines).toBeGreaterThan(0);
    expect(sandboxes.every((name) => name.startsWith("owlclaw-"))).toBe(true);
    expect(JSON.stringify(logs)).not.toContain(CANARY);
  });

  test("a volume is the folder of the host", async () => {
    expect(await inside().sh("cat /workspace2/secret.txt; echo from inside > /workspace2/made.txt")).toBe(CANARY);
    expect(await lab().machine.ask("facts")).toMatchObject({ written: "from inside\n" });
  });

  test("files and processes of the host and of the machine's own system are out of reach", async () => {
    const seen = await inside().sh(`
      for file in /root/microsandbox.json /root/data /srv/beside /job /.msb/rootfs/upperfs /proc/1/root /proc/1/environ /dev/vda /dev/mem /dev/kvm /dev/vsock /etc/shadow
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
    const { machine, connect } = lab();
    const before = await machine.ask("foreign");
    expect(before.sandboxes).toContain("foreign");
    expect(before.machines).toBeGreaterThan(1);
    expect(before.folders).not.toEqual([]);
    const after = await machine.ask("kill");
    expect(after.sandboxes).toEqual(["foreign"]);
    expect(after.folders).toEqual([]);
    expect(after.machines).toBe(1);
    const result = await call(await connect("microsandbox"), "code_run", { code: "print(6 * 7)" });
    expect(result.structuredContent).toMatchObject({ stdout: "42\n" });
  });
}
