import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, connectHttp } from "../e2e/sandbox-client.ts";
import { defineToolSuite } from "../e2e/sandbox-tool-suite.ts";
import { defineConfinementTests } from "../escape/sandbox-confinement-suite.ts";
import { openInside } from "../escape/sandbox-lab.ts";
import { definePathSuite } from "../escape/sandbox-path-suite.ts";
import { whyNoMachine } from "./machine.ts";
import { type MicrosandboxMachine, startMicrosandboxMachine } from "./microsandbox-machine.ts";

const CANARY = `canary-${Math.random().toString(36).slice(2)}`;
/** Everything takes some fifty times as long in a machine that is emulated. */
const CALL_TIMEOUT_MS = 600_000;
const RACES = 5;

const reason = await whyNoMachine();
let machine: MicrosandboxMachine;
let client: Client;

/** One that is patient enough. */
async function patientClient(url = machine.urls.microsandbox): Promise<Client> {
  const made = await connectHttp(url);
  const callTool = made.callTool.bind(made);
  made.callTool = (params, options) => callTool(params, { timeout: CALL_TIMEOUT_MS, ...options });
  return made;
}

describe.skipIf(reason !== undefined)(`microVMs in a machine whose processor is emulated ${reason ?? ""}`, () => {
  beforeAll(async () => {
    machine = await startMicrosandboxMachine(CANARY);
    client = await patientClient();
  });

  afterAll(async () => {
    await machine?.stop();
  });

  defineToolSuite(
    ["http"],
    () => ({}),
    async () => await patientClient(),
  );

  test("a machine of its own for each sandbox, and nothing that was said is written down by microsandbox", async () => {
    const inside = await openInside(client);
    expect(await inside.sh(`echo ${CANARY} is a secret; uname -r`)).toMatch(/^canary-\w+ is a secret\n6\./);
    const { machines, sandboxes, logs } = await machine.ask("facts");
    expect(machines).toBeGreaterThan(0);
    expect(sandboxes.every((name) => name.startsWith("owlclaw-"))).toBe(true);
    expect(JSON.stringify(logs)).not.toContain(CANARY);
    await inside.call("sandbox_destroy");
  });

  test("a volume is the folder of the host", async () => {
    const inside = await openInside(client);
    expect(await inside.sh("cat /workspace2/secret.txt; echo from inside > /workspace2/made.txt")).toBe(CANARY);
    expect(await machine.ask("facts")).toMatchObject({ written: "from inside\n" });
    await inside.call("sandbox_destroy");
  });

  test("programs in a microVM reach an allowed host through the proxy, and no other", async () => {
    const inside = await openInside(client, { template: "node" });
    expect(await inside.sh("ls /sys/class/net")).toBe("lo\n");
    const read = await inside.python(`
import urllib.request, urllib.error
def get(url):
    try: return urllib.request.urlopen(url).read()
    except urllib.error.HTTPError as error: return error.read()
print(get("http://good.test/"), len(get("http://good.test/large.bin")), get("http://bad.test/"))`);
    expect(read).toMatch(/^b'hello from outside' 1000000 b'egress refused: bad\.test:80 is not in network\.allow/);
    await inside.call("sandbox_destroy");
  });

  test("who takes more memory than his machine has is ended, and the next call works", async () => {
    const inside = await openInside(client);
    const hog = await inside.call("code_run", { code: "x = []\nwhile True: x.append(bytearray(b'x' * (16 << 20)))" });
    expect(hog.isError).toBe(true);
    expect(await inside.sh("echo alive")).toBe("alive\n");
    await inside.call("sandbox_destroy");
  });

  describe("attacks:", () => {
    definePathSuite(() => client, RACES);
    defineConfinementTests(
      () => client,
      () => Promise.resolve([Number(new URL(machine.urls.microsandbox).port), 9001]),
    );

    test("files and processes of the host and of the machine's own system are out of reach", async () => {
      const inside = await openInside(client);
      const seen = await inside.sh(`
        for file in /root/config.json /root/data /srv/beside /job /.msb/rootfs/upperfs /proc/1/root /proc/1/environ /dev/vda /dev/mem /dev/kvm /dev/vsock /etc/shadow
        do ls -d $file/. > /dev/null 2>&1 && ls $file > /dev/null 2>&1 && echo "opened $file"; cat $file > /dev/null 2>&1 && echo "read $file"; done
        env | grep -c ${CANARY}; ls /proc | grep -c '^[0-9]'; id -u; touch /usr/x /etc/x /x /opt/owlclaw/x /opt/owlclaw-node/x 2> /dev/null && echo written
        ls /proc/sys/kernel/core_pattern && echo '|/x' 2> /dev/null > /proc/sys/kernel/core_pattern && echo core; grep -c msb /proc/[0-9]*/comm`);
      expect(seen).not.toMatch(/opened|read|written|\ncore/);
      expect(seen).toMatch(/^0\n\d\n1000\n/);
    });
  });

  describe("bubblewrap on cgroup version 2:", () => {
    let plain: Client;
    const open = async (): Promise<Client> => await patientClient(machine.urls.bubblewrap);

    beforeAll(async () => {
      await machine.ask("bubblewrap");
      plain = await open();
    });

    defineToolSuite(["http"], () => ({}), open);
    describe("attacks:", () => {
      definePathSuite(() => plain, RACES);
      defineConfinementTests(
        () => plain,
        () => Promise.resolve([Number(new URL(machine.urls.bubblewrap).port), 9001]),
      );
    });
  });

  test("after kill -9 nothing is left, other applications' machines are, and the next server works", async () => {
    const before = await machine.ask("foreign");
    expect(before.sandboxes).toContain("foreign");
    const lost = await openInside(client);
    await lost.sh("echo kept > file.txt");
    const after = await machine.ask("kill");
    expect(after.sandboxes).toEqual(["foreign"]);
    expect(after.folders).toEqual([]);
    expect(after.machines).toBe(1);
    client = await patientClient();
    const result = await call(client, "code_run", { code: "print(6 * 7)" });
    expect(result.structuredContent).toMatchObject({ stdout: "42\n" });
  });
});
