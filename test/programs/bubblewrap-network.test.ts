import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Control } from "../../src/sandbox/runtimes/bubblewrap/bubblewrap-host.ts";
import { isRoot } from "../escape/bubblewrap-instances.ts";
import { bundleServer, openServerPlace, type ServerPlace } from "../escape/bubblewrap-server-process.ts";

/** Answers every question with the same address, over UDP. It ends with the server. */
const NAME_SERVER = `
import select, socket, struct
lines = []
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET, "10.0.0.5"), (socket.AF_INET6, "fd00:53::1")):
    line = socket.socket(family, socket.SOCK_DGRAM); line.bind((address, 53)); lines.append(line)
print("ready", flush=True)
while True:
    for line in select.select(lines, [], [])[0]:
        data, sender = line.recvfrom(512)
        question = data[12:data.index(0, 12) + 5]
        isA = question[-4:-2] == bytes([0, 1])
        answer = struct.pack("!HHHIH4s", 0xC00C, 1, 1, 60, 4, bytes([192, 0, 2, 7])) if isA else b""
        line.sendto(data[:2] + struct.pack("!HHHHH", 0x8180, 1, int(isA), 0, 0) + question + answer, sender)
`;

/** A network for the whole server, with stand-ins for what a sandbox must not reach. No packet leaves it. */
const OWN_NETWORK = [
  "unshare",
  "--net",
  "--",
  "bash",
  "--norc",
  "-c",
  `ip link set lo up
for a in 169.254.169.254 10.0.0.5 192.168.1.1; do ip addr add $a/32 dev lo; done
for a in fd00:ec2::254 fd00:53::1; do ip addr add $a/128 dev lo nodad; done
exec 9< <(exec setpriv --pdeathsig KILL python3 -I -c "$0")
read -r _ <&9; exec 9<&-; exec "$@"`,
  NAME_SERVER,
];

const LISTEN = [
  { host: "127.0.0.1", port: 8080 },
  { host: "::1", port: 8080 },
  { host: "169.254.169.254", port: 80 },
  { host: "fd00:ec2::254", port: 80 },
  { host: "10.0.0.5", port: 53 },
  { host: "192.168.1.1", port: 443 },
];

const reach = (host: string, port: number): string => `reach(${JSON.stringify(host)}, ${port})`;

/** One line of Python each. The port 8080 stands for that of the MCP server. */
const ATTACKS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "metadata address": {
    "as it is written": reach("169.254.169.254", 80),
    "as one number": reach("2852039166", 80),
    "inside an IPv6 address": reach("::ffff:169.254.169.254", 80),
    "its IPv6 address": reach("fd00:ec2::254", 80),
  },
  "host loopback, the MCP port and what is beside": {
    "127.0.0.1": reach("127.0.0.1", 8080),
    "::1": reach("::1", 8080),
    localhost: reach("localhost", 8080),
    "0.0.0.0": reach("0.0.0.0", 8080),
    "inside an IPv6 address": reach("::ffff:127.0.0.1", 8080),
    "a neighbour's address": reach("192.168.1.1", 443),
  },
  DNS: {
    "the system's own way": "socket.getaddrinfo('stolen.example', 80)",
    "a question to a name server": "ask(socket.AF_INET, '10.0.0.5')",
    "a question over IPv6": "ask(socket.AF_INET6, 'fd00:53::1')",
    "a question over TCP": reach("10.0.0.5", 53),
  },
};

const PROGRAM = `
import socket, sys
def reach(host, port):
    with socket.create_connection((host, port), 5) as line:
        if line.recv(100) != b"reached\\n": raise OSError("another answer")
def ask(family, server):
    with socket.socket(family, socket.SOCK_DGRAM) as line:
        line.settimeout(5)
        line.sendto(bytes([1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 6]) + b"stolen" + bytes([0, 0, 1, 0, 1]), (server, 53))
        if bytes([192, 0, 2, 7]) not in line.recv(512): raise OSError("another answer")
for attack in sys.argv[1:]:
    try:
        exec(attack)
        print("done")
    except OSError: print("refused")
`;

describe("from a sandbox without network", () => {
  beforeEach((context) => {
    if (!isRoot) context.skip("only root can make a network to test in; the probe shows the host's loopback to all");
  });
  const lines = Object.values(ATTACKS).flatMap((attacks) => Object.values(attacks));
  let kept: string[];
  let without: string[];
  beforeAll(async () => {
    if (!isRoot) return;
    const bundle = await bundleServer();
    places = [await openServerPlace(bundle), await openServerPlace(bundle)];
    [kept = [], without = []] = await Promise.all([attackFrom(places[0], []), attackFrom(places[1], ["network"])]);
  });
  let places: ServerPlace[] = [];
  afterAll(async () => await Promise.all(places.map(async (place) => await place.close())));

  const attackFrom = async (place: ServerPlace | undefined, off: readonly Control[]): Promise<string[]> => {
    const order = { off, listen: LISTEN, commands: [["python3", "-I", "-c", PROGRAM, ...lines]] };
    const started = await place?.start(order, { prefix: OWN_NETWORK });
    const outcome = started?.answers[0]?.outcomes[0];
    return `${outcome?.stdout}${outcome?.stderr}`.trim().split("\n");
  };

  describe.each(Object.entries(ATTACKS))("%s:", (_class, attacks) => {
    it.each(Object.entries(attacks))("%s is out of reach", (_name, line) => {
      expect(kept[lines.indexOf(line)]).toBe("refused");
    });

    it.each(Object.entries(attacks))("%s is reached in the host's network", (_name, line) => {
      expect(without[lines.indexOf(line)]).toBe("done");
    });
  });
});
