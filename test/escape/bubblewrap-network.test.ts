import { afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Control } from "../../src/runtimes/bubblewrap/controls.ts";
import { isRoot } from "./bubblewrap-cells.ts";
import { bundleServer, openServerPlace, type ServerPlace } from "./bubblewrap-server-process.ts";

/** A network of its own for the whole server, with stand-ins for what a sandbox must not reach. No packet leaves it. */
const OWN_NETWORK = [
  "unshare",
  "--net",
  "--",
  "bash",
  "--norc",
  "-c",
  'ip link set lo up; for a in 169.254.169.254 10.0.0.5 192.168.1.1; do ip addr add $a/32 dev lo; done; exec "$@"',
  "bash",
];

const LISTEN = [
  { host: "127.0.0.1", port: 8080 },
  { host: "::1", port: 8080 },
  { host: "169.254.169.254", port: 80 },
  { host: "10.0.0.5", port: 53 },
  { host: "192.168.1.1", port: 443 },
];

const ATTACK = `
import json, socket, sys
for host, port in json.loads(sys.argv[1]):
    try:
        print(socket.create_connection((host, port), 1).recv(100).decode().strip())
    except OSError as error:
        print("refused")
`;

const COMMAND = ["python3", "-I", "-c", ATTACK, JSON.stringify(LISTEN.map(({ host, port }) => [host, port]))];

describe("a cell without network", () => {
  beforeEach((context) => {
    if (!isRoot) context.skip("only root can make a network to test in; the probe shows the host's loopback to all");
  });
  let bundle = "";
  let place: ServerPlace | undefined;
  beforeAll(async () => {
    bundle = await bundleServer();
  });
  afterEach(async () => await place?.close());

  const attack = async (off: readonly Control[]): Promise<string[]> => {
    place = await openServerPlace(bundle);
    const order = { off, listen: LISTEN, commands: [COMMAND] };
    const { answers } = await place.start(order, { prefix: OWN_NETWORK });
    return answers[0]?.outcomes[0]?.stdout.trim().split("\n") ?? [];
  };

  it("reaches neither the MCP port, the metadata address, a name server nor a private address", async () => {
    expect(await attack([])).toEqual(LISTEN.map(() => "refused"));
  });

  it("would reach all of them in the host's network", async () => {
    expect(await attack(["network"])).toEqual(LISTEN.map(() => "reached"));
  });
});
