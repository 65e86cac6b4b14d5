import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { startHttp, stdioCommand } from "../integration/harness.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";

/** Infinity where JavaScript reads it, and `null` where it writes it again. */
const TOO_LARGE = ["1e999", "-1e999", "1E+400", "9".repeat(400), `-${"9".repeat(309)}.5`, "0.1e310"];
const LARGE = ["1e308", "-1.5E+10", "1e-999", "9".repeat(308)];

const HANDLERS = {
  "pay.ts": `
    /** Pays. */
    export function pay(amount: number | null): string { return "paid " + amount; }
    import type { CallContext } from "owlclaw";
    /** Charges. */
    export function charge_it(how: string, context: CallContext): string {
      context.charge(({ nan: NaN, infinite: Infinity, negative: -5 } as Record<string, number>)[how] ?? 1);
      return "charged";
    }
  `,
  "pay.py": `
from owlclaw import Context

def charge_python(how: str, context: Context) -> str:
    """Charges."""
    context.charge({"nan": float("nan"), "infinite": float("inf"), "negative": -5.0}.get(how, 1))
    return "charged"
`,
};

const config = () => ({
  handlers: { paths: [temporaryFolder(HANDLERS)] },
  governance: { defaults: { monthlyBudget: 50 } },
});
const callOf = (amount: string): string =>
  `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"amount":${amount}}}}`;

test("a number that is Infinity for some and null for others is refused when it is parsed, over HTTP", async () => {
  const server = await startHttp({ config: config() });
  const post = async (body: string): Promise<Record<string, unknown>> => {
    const answer = await fetch(server.url, { method: "POST", headers: { "content-type": "application/json" }, body });
    return (await answer.json()) as Record<string, unknown>;
  };
  for (const amount of TOO_LARGE) {
    expect(await post(callOf(amount))).toMatchObject({ error: { code: -32700, data: { kind: "parse_error" } } });
    expect(await post(`[${callOf(amount)}]`)).toMatchObject({ error: { code: -32700 } });
  }
  for (const amount of LARGE)
    expect(await post(callOf(amount))).toMatchObject({ result: { content: [{ text: `paid ${Number(amount)}` }] } });
  // Digits inside a string are not a number.
  expect(await post(callOf("null").replace('"pay"', '"pay 1e999"'))).toMatchObject({ error: { code: -32001 } });
});

test("it is refused on stdio as well, and the connection goes on", async () => {
  const { command, args, env } = stdioCommand({ config: config() });
  const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "ignore"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const send = async (line: string): Promise<unknown> => {
    child.stdin.write(`${line}\n`);
    return JSON.parse(String((await lines.next()).value));
  };
  const hello = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "t", version: "1" } };
  await send(JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params: hello }));
  expect(await send(callOf("1e999"))).toMatchObject({ error: { code: -32700 } });
  expect(await send(callOf("5"))).toMatchObject({ result: { content: [{ text: "paid 5" }] } });
  child.stdin.end();
  await once(child, "exit");
});

test("neither a handler in TypeScript nor one in Python can charge what is no amount", async () => {
  const server = await startHttp({ config: config() });
  const call = async (name: string, how: string): Promise<unknown> => {
    const params = { name, arguments: { how } };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    return (await fetch(server.url, { method: "POST", headers: { "content-type": "application/json" }, body })).json();
  };
  for (const name of ["charge_it", "charge_python"]) {
    expect(await call(name, "one")).toMatchObject({ result: { content: [{ text: "charged" }] } });
    for (const how of ["nan", "infinite", "negative"])
      expect(await call(name, how), `${name} ${how}`).toMatchObject({ error: { data: { kind: "execution_error" } } });
  }
});
