import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { exchange, get, getSecurely, openTunnel, readAll } from "./egress/raw-client.ts";
import { PLACES } from "./egress/places.ts";
import { startWorld, type World } from "./egress/world.ts";
import { eventually } from "../escape/http-client.ts";

let world: World;

beforeAll(async () => {
  world = await startWorld();
});

afterAll(() => world.stop());

const GOOD = "good.test";
const DNS = { [GOOD]: [[PLACES.public]], "sub.good.test": [[PLACES.public]], "other.test": [[PLACES.otherPublic]] };

async function openListener(more: Partial<Parameters<World["open"]>[0]> = {}): Promise<string> {
  return await world.open({ allow: [GOOD], dns: DNS, ...more });
}

describe("what is allowed works", () => {
  test("plain HTTP, with the path, the headers and the body, and nothing added", async () => {
    await world.forgetRequests();
    const listener = await openListener();
    const head = `POST http://${GOOD}/a?b=c HTTP/1.1\r\nHost: ${GOOD}\r\nX-Mine: 1\r\nContent-Length: 5\r\n`;
    const hop =
      "Proxy-Connection: keep-alive\r\nProxy-Authorization: Basic x\r\nConnection: X-Hop\r\nX-Hop: 1\r\nTE: trailers\r\n";
    const answer = await exchange(listener, `${head}${hop}\r\nhello`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(answer).toContain(`host ${PLACES.public} for ${GOOD}: POST /a?b=c hello`);
    const headers = ["Host", GOOD, "X-Mine", "1", "Content-Length", "5", "Connection", "close"];
    expect((await world.hosts()).requests).toEqual([
      { address: PLACES.public, method: "POST", url: "/a?b=c", headers, body: "hello" },
    ]);
  });

  test("a chunked body arrives whole", async () => {
    const listener = await openListener();
    const head = `POST http://${GOOD}/ HTTP/1.1\r\nHost: ${GOOD}\r\nTransfer-Encoding: chunked\r\n\r\n`;
    expect(await exchange(listener, head, "3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n")).toContain("POST / abcdef");
  });

  test("TLS through a tunnel, end to end", async () => {
    const tunnel = await openTunnel(await openListener(), `${GOOD}:443`);
    expect(await getSecurely(tunnel, { servername: GOOD, host: GOOD })).toContain(`host ${PLACES.public} as ${GOOD}`);
  });

  test("IPv6", async () => {
    const listener = await openListener({ dns: { [GOOD]: [[PLACES.publicV6]] } });
    expect(await get(listener, `http://${GOOD}/`)).toContain(`host ${PLACES.publicV6}`);
  });
});

describe("a host that is not listed", () => {
  test("is refused with what to ask for, in both forms, and its name is not even looked up", async () => {
    const listener = await openListener();
    const plain = await get(listener, "http://other.test/");
    const tunnel = await openTunnel(listener, "other.test:443");
    expect(plain).toMatch(/^HTTP\/1\.1 403 /);
    expect(plain).toContain("egress refused: other.test:80 is not in network.allow; allowed: good.test");
    expect(tunnel.text).toContain("egress refused: other.test:443 is not in network.allow; allowed: good.test");
    const { decisions, lookups } = await world.state(listener);
    expect(decisions.map(({ host, port, allowed, reason }) => ({ host, port, allowed, reason }))).toEqual([
      { host: "other.test", port: 80, allowed: false, reason: "not in network.allow" },
      { host: "other.test", port: 443, allowed: false, reason: "not in network.allow" },
    ]);
    expect(lookups).toEqual([]);
  });

  test("is reached when it is listed", async () => {
    const listener = await openListener({ allow: [GOOD, "other.test"] });
    expect(await get(listener, "http://other.test/")).toContain(`host ${PLACES.otherPublic}`);
  });

  test("is refused after a redirect to it, since the client asks again", async () => {
    const attack = async (listener: string): Promise<string> => {
      const first = await get(listener, `http://${GOOD}/redirect?to=http://other.test/loot`);
      return await get(listener, /location: (\S+)/i.exec(first)?.[1] ?? "");
    };
    expect(await attack(await openListener())).toContain("403 egress refused: ");
    expect(await attack(await openListener({ allow: [GOOD, "other.test"] }))).toContain(`host ${PLACES.otherPublic}`);
  });

  test("is refused on a subdomain of a listed name, and the apex of a listed wildcard", async () => {
    expect(await get(await openListener(), "http://sub.good.test/")).toContain("403 egress refused: ");
    const wildcard = await openListener({ allow: ["*.good.test"] });
    expect(await get(wildcard, "http://sub.good.test/")).toContain(`host ${PLACES.public}`);
    expect(await get(wildcard, `http://${GOOD}/`)).toContain("403 egress refused: ");
  });

  test("is refused with an empty list", async () => {
    expect(await get(await openListener({ allow: [] }), `http://${GOOD}/`)).toContain("allowed: nothing");
  });
});

describe("a port that is not listed", () => {
  test("is refused: SSH on an allowed host", async () => {
    const tunnel = await openTunnel(await openListener(), `${GOOD}:22`);
    expect(tunnel.status).toBe(403);
    expect(tunnel.text).toContain(`${GOOD}:22 is not in network.allow`);
  });

  test("is reached when the rule names it", async () => {
    const tunnel = await openTunnel(await openListener({ allow: [`${GOOD}:22`] }), `${GOOD}:22`);
    expect(await readAll(tunnel.socket.resume())).toBe("SSH-2.0-standin\r\n");
  });
});

describe("an allowed name that points inwards", () => {
  const inner = [
    ["the metadata service", PLACES.metadata, "a cloud metadata address"],
    ["a private network", PLACES.private, "a private address"],
    ["a unique-local network", PLACES.uniqueLocal, "a unique-local address"],
  ] as const;

  test.each(inner)("to %s is refused, and reached when the check is off", async (_, address, name) => {
    const dns = { [GOOD]: [[address]] };
    const answer = await get(await openListener({ dns }), `http://${GOOD}/`);
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(answer).toContain(`resolves to ${address}, which is ${name}`);
    expect((await openTunnel(await openListener({ dns }), `${GOOD}:443`)).status).toBe(403);
    expect(await get(await openListener({ dns, without: ["addresses"] }), `http://${GOOD}/`)).toContain(
      `host ${address}`,
    );
  });

  test.each(inner)("to %s is reached when a rule names the address", async (_, address) => {
    const allow = [GOOD, address.includes(":") ? `[${address}]:80` : `${address}:80`];
    expect(await get(await openListener({ dns: { [GOOD]: [[address]] }, allow }), `http://${GOOD}/`)).toContain(
      address,
    );
  });

  test.each([
    ["good first", [PLACES.public, PLACES.private]],
    ["bad first", [PLACES.private, PLACES.public]],
  ])("beside a good address is refused, and reached when the check is off: %s", async (_, addresses) => {
    const dns = { [GOOD]: [addresses] };
    const listener = await openListener({ dns });
    expect(await get(listener, `http://${GOOD}/`)).toContain(`resolves to ${PLACES.private}`);
    const open = await openListener({ dns, without: ["addresses"] });
    expect(await get(open, `http://${GOOD}/`)).toContain(`host ${addresses[0]}`);
  });

  test("only at the second lookup gains nothing: there is none", async () => {
    const dns = { [GOOD]: [[PLACES.public], [PLACES.private]] };
    const listener = await openListener({ dns });
    expect(await get(listener, `http://${GOOD}/`)).toContain(`host ${PLACES.public}`);
    expect((await world.state(listener)).lookups).toEqual([GOOD]);
    expect(await get(await openListener({ dns, without: ["pinning"] }), `http://${GOOD}/`)).toContain(
      `host ${PLACES.private}`,
    );
  });
});

describe("an inner address as a number", () => {
  const spellings = [
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "169.254.43518",
    "[::ffff:169.254.169.254]",
    "[64:ff9b::a9fe:a9fe]",
  ];

  test.each(spellings)("is refused as %s", async (spelling) => {
    const listener = await openListener();
    expect(await get(listener, `http://${spelling}/`)).toMatch(/^HTTP\/1\.1 403 /);
    expect((await openTunnel(listener, `${spelling}:80`)).status).toBe(403);
  });

  test.each(spellings.slice(0, 5))("is the same address as %s, which a rule for it opens", async (spelling) => {
    const listener = await openListener({ allow: [`${PLACES.metadata}:80`] });
    expect(await get(listener, `http://${spelling}/`)).toContain(`host ${PLACES.metadata}`);
  });
});

describe("the MCP server itself", () => {
  const dns = {
    [GOOD]: [[PLACES.loopback]],
    "self.test": [[PLACES.proxyMachine]],
    "zero.test": [["0.0.0.0"]],
    "mapped.test": [["::ffff:127.0.0.1"]],
  };
  const names = Object.keys(dns);
  const allow = names.map((name) => `${name}:8080`);

  beforeAll(() => world.startOwnServer());

  test.each(names)("is not reached through %s, and is when the check is off", async (name) => {
    const url = `http://${name}:8080/mcp`;
    expect(await get(await openListener({ dns, allow }), url)).toMatch(/^HTTP\/1\.1 403 /);
    expect(await get(await openListener({ dns, allow, without: ["addresses"] }), url)).toMatch(/^HTTP\/1\.1 200 /);
  });
});

describe("a Host header that names another host", () => {
  const lie = ["Host: other.test"];

  test("is refused in a plain request; without the check the host still gets the checked name", async () => {
    expect(await get(await openListener(), `http://${GOOD}/`, lie)).toMatch(/^HTTP\/1\.1 400 /);
    const answer = await get(await openListener({ without: ["host header"] }), `http://${GOOD}/`, lie);
    expect(answer).toContain(`for ${GOOD}:`);
  });

  test("reaches the other host behind the same address through a proxy that passes heads on as they are", async () => {
    const path = await openListener({ without: ["framing"] });
    expect(await get(path, `http://${GOOD}/`, [...lie, "Connection: close"])).toContain("for other.test:");
  });

  test("is refused in CONNECT, and makes no difference to where the tunnel goes when the check is off", async () => {
    expect((await openTunnel(await openListener(), `${GOOD}:443`, lie)).status).toBe(400);
    expect((await openTunnel(await openListener({ without: ["host header"] }), `${GOOD}:443`, lie)).status).toBe(200);
  });

  test("is refused when there are two", async () => {
    const twice = ["Host: good.test", "Host: other.test"];
    expect(await get(await openListener(), `http://${GOOD}/`, twice)).toMatch(/^HTTP\/1\.1 400 /);
  });
});

describe("a TLS greeting for another host than the tunnel's", () => {
  test("goes no further, and does when the check is off", async () => {
    const attack = async (listener: string): Promise<string> =>
      await getSecurely(await openTunnel(listener, `${GOOD}:443`), { servername: "hidden.test", host: "hidden.test" });
    await world.forgetRequests();
    const listener = await openListener();
    expect(await attack(listener)).toMatch(/error: .*unrecognized name/i);
    expect((await world.hosts()).requests).toEqual([]);
    const decision = await eventually(
      async () => (await world.state(listener)).decisions[0],
      (entry) => entry?.isOpen === false,
    );
    expect(decision).toMatchObject({ allowed: false, reason: "the TLS greeting names another server" });
    expect(await attack(await openListener({ without: ["server name"] }))).toContain("as hidden.test");
  });
});

describe("malformed targets are refused", () => {
  test.each([
    ["no port", `CONNECT ${GOOD} HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["port 0", `CONNECT ${GOOD}:0 HTTP/1.1\r\nHost: ${GOOD}:0\r\n\r\n`],
    ["port 65536", `CONNECT ${GOOD}:65536 HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["a port of many digits", `CONNECT ${GOOD}:00000000443 HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["a user name in CONNECT", `CONNECT good.test@other.test:443 HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["a user name in a URL", `GET http://good.test@other.test/ HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["https in a plain request", `GET https://${GOOD}/ HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["another scheme", `GET ftp://${GOOD}/ HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["a path alone", `GET / HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["a bare CR in the host", `GET http://good.test\rx/ HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["a tab in the target", `GET http://good.test\tx/ HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["a NUL in the host", `GET http://good.test\0.other.test/ HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["a zone id", `CONNECT [fe80::1%25lo]:443 HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["a fragment", `GET http://${GOOD}#@other.test/ HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["a backslash", `GET http://${GOOD}\\@other.test/ HTTP/1.1\r\nHost: ${GOOD}\r\n\r\n`],
    ["no HTTP at all", "\x16\x03\x01garbage\r\n\r\n"],
  ])("%s", async (_, bytes) => {
    const listener = await openListener();
    expect(await exchange(listener, Buffer.from(bytes, "latin1"))).toMatch(/^HTTP\/1\.1 400 /);
    expect((await world.state(listener)).lookups).toEqual([]);
  });
});
