import { afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import type * as BwrapArguments from "../../src/sandbox/runtimes/bubblewrap/bwrap-arguments.ts";
import type { Control } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-host.ts";
import { becomeOrdinaryUser, type Lab, openLab } from "./bubblewrap-instances.ts";

// bwrap runs as an ordinary user for root as well: what its arguments refuse here they refuse there.
beforeAll(becomeOrdinaryUser);

type Change = Readonly<Record<string, string>>;

// The runtime starts bwrap itself, with its own arguments; a test changes nothing but the ones named here.
const given = vi.hoisted((): { change: Change } => ({ change: {} }));
vi.mock("../../src/sandbox/runtimes/bubblewrap/bwrap-arguments.ts", async (importReal) => {
  const real = await importReal<typeof BwrapArguments>();
  const bwrapArguments: typeof real.bwrapArguments = async (host, plan) => {
    const args = await real.bwrapArguments(host, plan);
    const changed = Object.entries(given.change).reduce((text, pair) => {
      const [from = "", to = ""] = pair.map((words) => `${words} `.replaceAll(" ", "\0"));
      expect(text.split(from)).toHaveLength(2);
      return text.replace(from, to);
    }, args.toString());
    return Buffer.from(changed);
  };
  return { ...real, bwrapArguments };
});

let lab: Lab | undefined;
afterEach(async () => {
  given.change = {};
  await lab?.close();
});

async function attack(code: string, off: readonly Control[] = []): Promise<string> {
  lab = await openLab({ off });
  const { stdout, stderr } = await (await lab.start()).python(code);
  return `${stdout}${stderr}`.trim();
}

describe("a raw socket", () => {
  /** In place of the arguments that take every capability away: the one that raw sockets need, over the sandbox's own network. */
  const WITH_CAPABILITY = {
    "--cap-drop ALL": "--cap-add CAP_NET_RAW",
    "--uid 1000": "--uid 0",
    "--gid 1000": "--gid 0",
  };

  const programOf = (line: string): string => `
import socket, struct
FORGED = struct.pack("!BBHHHBBH4s4s", 69, 0, 28, 1, 0, 64, 17, 0, bytes([10, 9, 8, 7]), bytes([127, 0, 0, 1])) + struct.pack("!HHHH", 1, 9, 8, 0)
try:
    ${line}
    print("done")
except OSError as error: print("refused")
`;

  /** Each sends one packet over the loopback of its own network. */
  const ATTACKS: ReadonlyArray<readonly [string, readonly Control[], string]> = [
    [
      "ICMP",
      [],
      "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1).sendto(bytes([8, 0, 247, 255, 0, 0, 0, 0]), ('127.0.0.1', 0))",
    ],
    [
      "ICMP over IPv6",
      [],
      "socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58).sendto(bytes([128, 0, 0, 0, 0, 0, 0, 0]), ('::1', 0))",
    ],
    ["a forged sender", [], "socket.socket(socket.AF_INET, socket.SOCK_RAW, 255).sendto(FORGED, ('127.0.0.1', 0))"],
    ["frames of the device", ["seccomp"], "socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 768).bind(('lo', 0))"],
  ];

  it.each(ATTACKS)("for %s is refused", async (_name, _off, line) => {
    expect(await attack(programOf(line))).toBe("refused");
  });

  // A user namespace inside another stands between a capability and the network: it is left out as well.
  it.each(ATTACKS)("for %s is made by whoever has the capability", async (_name, off, line) => {
    given.change = WITH_CAPABILITY;
    expect(await attack(programOf(line), [...off, "nested-namespaces"])).toBe("done");
  });

  it.each(ATTACKS)("for %s needs the capability even without the filter", async (_name, _off, line) => {
    expect(await attack(programOf(line), ["seccomp", "nested-namespaces"])).toBe("refused");
  });
});

describe("processes that nobody waits for", () => {
  /**
   * Each leaves one process without a parent, and says which. What has ended and is still there is a burden. It looks
   * when all have come to the state that is wanted (`None`: gone), or will not.
   */
  const orphans = (wanted: "None" | "'Z'"): string => `
import os, subprocess, time
def forked():
    told, tell = os.pipe()
    if os.fork() == 0:
        child = os.fork()
        if child != 0: os.write(tell, str(child).encode())
        os._exit(0)
    os.wait()
    return int(os.read(told, 20))
def run(*argv): return int(subprocess.check_output(argv))
orphans = {
    "double fork": forked(),
    "background of a shell": run("sh", "-c", "sleep 0 > /dev/null & echo $!"),
    "new session": run("sh", "-c", "setsid -f sh -c 'echo $$; exec > /dev/null'"),
}
def state_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat: return stat.read().rsplit(") ", 1)[1][0]
    except (FileNotFoundError, ProcessLookupError): return None
deadline = time.monotonic() + 20
while time.monotonic() < deadline and any(state_of(pid) != ${wanted} for pid in orphans.values()): time.sleep(0.01)
states = {name: state_of(pid) for name, pid in orphans.items()}
print(*[f"{name} {state}" for name, state in states.items() if state is not None], sep=", ")
`;

  it("are gone once they have ended: double fork, background of a shell, new session", async () => {
    expect(await attack(orphans("None"))).toBe("");
  });

  it("would all stay as zombies without a first process that reaps", async () => {
    given.change = { "--unshare-all": "--unshare-all --as-pid-1" };
    expect(await attack(orphans("'Z'"))).toBe("double fork Z, background of a shell Z, new session Z");
  });
});
