import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openInside, textOf } from "../escape/sandbox-lab.ts";
import { makePlace } from "../e2e/sandbox-client.ts";
import { connectInNetwork } from "../e2e/sandbox-network-world.ts";
import { NETWORK_MISSING } from "../setup/mandatory.ts";

const clients: Client[] = [];
afterAll(async () => {
  for (const client of clients) await client.close();
});
beforeEach((context) => {
  if (NETWORK_MISSING !== undefined) context.skip(NETWORK_MISSING);
});

async function open(options: { allow: readonly string[]; hasCable: boolean }): Promise<Client> {
  const client = await connectInNetwork(makePlace(), options);
  clients.push(client);
  return client;
}

/** How programs fetch something from a host, and what they show when it worked. */
const PROGRAMS: Readonly<Record<string, readonly [command: (host: string) => string, shown: string]>> = {
  curl: [(host) => `curl -sS http://${host}/hello.txt`, "hello from outside"],
  git: [(host) => `rm -rf r; git clone -q http://${host}/repo.git r && cat r/file`, "from the repository"],
  pip: [
    (host) =>
      `python3 -m pip -vv install --no-cache-dir --retries 0 --target t --index-url http://${host}/simple --trusted-host ${host} tiny && cat t/tiny.py`,
    "answer = 42",
  ],
  npm: [
    (host) =>
      `npm install --no-audit --no-fund --fetch-retries=0 --registry http://${host}/ tiny && cat node_modules/tiny/package.json`,
    "1.2.3",
  ],
  "Node's fetch": [
    (host) => `node -e "fetch('http://${host}/hello.txt').then(async (r) => console.log(r.status, await r.text()))"`,
    "200 hello from outside",
  ],
  "Python's urllib": [
    (host) =>
      `python3 -c "import urllib.request as u, urllib.error as e
try: print(u.urlopen('http://${host}/hello.txt').read())
except e.HTTPError as x: print(x.read())"`,
    "hello from outside",
  ],
};

describe("programs inside a sandbox", () => {
  let allowed: Client;
  let closed: Client;
  beforeAll(async () => {
    if (process.getuid?.() !== 0) return;
    allowed = await open({ allow: ["good.test"], hasCable: true });
    closed = await open({ allow: [], hasCable: true });
  });

  test.each(Object.entries(PROGRAMS))("%s reaches an allowed host", async (_name, [command, shown]) => {
    const inside = await openInside(allowed);
    expect(textOf(await inside.call("shell_exec", { command: command("good.test") }))).toContain(shown);
  });

  test("fetch in code_run reaches an allowed host", async () => {
    const inside = await openInside(allowed);
    const code = "await (await fetch('http://good.test/hello.txt')).text()";
    expect(textOf(await inside.call("code_run", { code, language: "node" }))).toContain("hello from outside");
  });

  test.each(Object.entries(PROGRAMS))("%s is refused another host, with the rule", async (_name, [command]) => {
    const inside = await openInside(allowed);
    const said = textOf(await inside.call("shell_exec", { command: command("bad.test") }));
    expect(said).toContain("bad.test:80 is not in network.allow");
  });

  test.each(Object.entries(PROGRAMS))(
    "%s reaches nothing where nothing is allowed",
    async (_name, [command, shown]) => {
      const inside = await openInside(closed);
      const said = textOf(await inside.call("shell_exec", { command: command("good.test"), timeout_seconds: 30 }));
      expect(said).not.toContain(shown);
    },
  );
});

test("[003-NFR-003] a server on a machine without any network serves code, shell and files", async () => {
  const inside = await openInside(await open({ allow: [], hasCable: false }));
  expect((await inside.call("code_run", { code: "6 * 7" })).structuredContent).toMatchObject({ value: "42" });
  await inside.call("file_write", { path: "f", content: "here" });
  expect(await inside.sh("cat f")).toBe("here");
});
