import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, headersOf, rpc, SECRET, token } from "../integration/governance-lab.ts";
import { type HttpServer, until } from "../integration/harness.ts";
import { modern } from "../integration/http-client.ts";
import { OtlpCollector } from "../services/otlp-collector.ts";
import { startBalancer, startServices, SERVICES_MISSING, type Services } from "../services/cluster.ts";

const CONFIG = {
  auth: { enabled: true, jwt: { secret: SECRET } },
  governance: { defaults: { callsPerMinute: 100_000, concurrency: 1000 } },
  sandbox: { enabled: true, pool: { size: 0 } },
  handlers: { paths: [] },
  tools: { timeoutSeconds: 40 },
  logging: { level: "debug" },
};

describe.skipIf(SERVICES_MISSING !== undefined)(
  `sandboxes behind a balancer that knows nothing of sessions${SERVICES_MISSING === undefined ? "" : `: ${SERVICES_MISSING}`}`,
  () => {
    let services: Services;
    let servers: HttpServer[];
    let balancer: Awaited<ReturnType<typeof startBalancer>>;
    let ada: { token: string };

    beforeAll(async () => {
      services = await startServices();
      const first = await services.start({ config: CONFIG });
      servers = [
        first,
        ...(await Promise.all([services.start({ config: CONFIG }), services.start({ config: CONFIG })])),
      ];
      balancer = await startBalancer(servers.map(({ origin }) => origin));
      ada = { token: await token("ada") };
    });
    afterAll(async () => {
      balancer.close();
      await Promise.all(servers.map((server) => server.stop()));
      await services.stop();
    });

    test("stateful code_run keeps its variables, whichever server is asked", async () => {
      const first = await call(balancer.url, "code_run", { code: "x = 40" }, ada);
      const { session_id } = first.body.result?.["structuredContent"] ?? {};
      for (let step = 1; step <= 6; step += 1) {
        const { body } = await call(balancer.url, "code_run", { code: "x += 1; x", session_id }, ada);
        expect(body.result?.["structuredContent"]).toMatchObject({
          value: String(40 + step),
          session_id,
          session_created: false,
        });
      }
      const newest = await modern(
        balancer.url,
        "tools/call",
        { name: "code_run", arguments: { code: "x", session_id } },
        { headers: headersOf(ada) },
      );
      expect(newest.body.result?.["structuredContent"]).toMatchObject({ value: "46", session_id });
      await call(balancer.url, "file_write", { path: "note.txt", content: "from anywhere", session_id }, ada);
      for (const { url } of servers) {
        const { body } = await rpc(url, "resources/read", { uri: `sandbox://${session_id}/note.txt` }, ada);
        expect(body.result?.["contents"]).toMatchObject([{ text: "from anywhere" }]);
      }
      const files = servers.map(({ origin }) => `${origin}/api/sandboxes/${session_id}/files/note.txt`);
      const texts = await Promise.all(files.map(async (url) => (await fetch(url, { headers: headersOf(ada) })).text()));
      expect(texts).toEqual(["from anywhere", "from anywhere", "from anywhere"]);
      // One row for each call, whoever ran it.
      const rows = services.postgres.sql("SELECT count(*) FROM ledger WHERE name = 'code_run'");
      expect(rows).toBe("8");
      const destroyed = await call(balancer.url, "sandbox_destroy", { session_id }, ada);
      expect(destroyed.body.result?.["structuredContent"]).toMatchObject({ destroyed: true });
      for (const { url } of servers) {
        const { body } = await call(url, "code_run", { code: "1", session_id }, ada);
        expect(body.result).toMatchObject({ isError: true, _meta: expect.anything() });
        expect(JSON.stringify(body.result)).toContain("there is no sandbox with this session_id");
      }
    });

    test("what the code did wrong, and that it took too long, is said as if it ran here", async () => {
      const made = await call(servers[0]!.url, "sandbox_create", {}, ada);
      const { session_id } = made.body.result?.["structuredContent"] ?? {};
      const slow = { code: "import time; time.sleep(60)", timeout_seconds: 1, session_id };
      const answers = await Promise.all(
        servers.map(({ url }) => call(url, "code_run", { code: "1/0", session_id }, ada)),
      );
      for (const { body } of answers) expect(body.result?.["content"][0].text).toContain("ZeroDivisionError");
      const late = await call(servers[1]!.url, "code_run", slow, ada);
      expect(late.body.result).toMatchObject({ isError: true });
      const invalid = await call(servers[1]!.url, "code_run", { session_id, code: 5 }, ada);
      expect(invalid.body.error?.data).toMatchObject({ kind: "invalid_params" });
    });

    test("a client that hangs up at one server has ended its call at the other", async () => {
      const made = await call(servers[0]!.url, "sandbox_create", {}, ada);
      const { session_id } = made.body.result?.["structuredContent"] ?? {};
      const gone = new AbortController();
      const body = {
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "shell_exec", arguments: { command: "touch started; sleep 28; touch finished", session_id } },
      };
      const hanging = fetch(servers[1]!.url, {
        method: "POST",
        body: JSON.stringify(body),
        headers: { "content-type": "application/json", ...headersOf(ada) },
        signal: gone.signal,
      }).catch(() => "hung up");
      const files = async (): Promise<string> =>
        JSON.stringify((await call(servers[2]!.url, "file_list", { session_id }, ada)).body.result);
      await until(files, (list) => list.includes("started"));
      gone.abort();
      expect(await hanging).toBe("hung up");
      const processes = async (): Promise<string> => {
        const command = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '";
        const { body: answer } = await call(servers[2]!.url, "shell_exec", { command, session_id }, ada);
        return JSON.stringify(answer.result);
      };
      await until(processes, (list) => !list.includes("sleep 28"));
      expect(await files()).not.toContain("finished");
    });

    test("progress of a call comes from the server that runs it, to a client of another; so goes its label", async () => {
      const made = await call(servers[0]!.url, "sandbox_create", {}, ada);
      const { session_id } = made.body.result?.["structuredContent"] ?? {};
      const client = new Client({ name: "watcher", version: "1.0.0" });
      const headers = headersOf({ ...ada, label: "nightly" });
      await client.connect(new StreamableHTTPClientTransport(new URL(servers[1]!.url), { requestInit: { headers } }));
      const seen: string[] = [];
      // It ends when its first line has been seen: what came only with the result would be too late.
      const command = "echo first; until [ -e go ]; do sleep 0.05; done; echo last";
      const result = client.callTool(
        { name: "shell_exec", arguments: { command, session_id } },
        { onprogress: ({ message = "" }) => void seen.push(message) },
      );
      await until(
        async () => seen.join(""),
        (text) => text.includes("first"),
      );
      await call(servers[2]!.url, "file_write", { path: "go", content: "", session_id }, ada);
      expect((await result).structuredContent).toMatchObject({ stdout: "first\nlast\n" });
      await client.close();
      const lines = servers[0]!.logs.filter(({ message }) => message === "runs a call of another server");
      expect(lines).toContainEqual(expect.objectContaining({ client: "ada", label: "nightly" }));
      const rows = services.postgres.sql("SELECT count(*) FROM ledger WHERE name = 'shell_exec' AND label = 'nightly'");
      expect(rows).toBe("1");
    });

    test("a call that is cancelled by its client ends at the other server", async () => {
      const made = await call(servers[0]!.url, "sandbox_create", {}, ada);
      const { session_id } = made.body.result?.["structuredContent"] ?? {};
      const client = new Client({ name: "canceller", version: "1.0.0" });
      const requestInit = { headers: headersOf(ada) };
      await client.connect(new StreamableHTTPClientTransport(new URL(servers[1]!.url), { requestInit }));
      const stop = new AbortController();
      const command = "touch began; sleep 28; touch over";
      const result = client
        .callTool({ name: "shell_exec", arguments: { command, session_id } }, { signal: stop.signal })
        .catch(() => "cancelled");
      const shell = async (line: string): Promise<string> =>
        JSON.stringify((await call(servers[2]!.url, "shell_exec", { command: line, session_id }, ada)).body.result);
      await until(
        () => shell("ls"),
        (list) => list.includes("began"),
      );
      stop.abort();
      expect(await result).toBe("cancelled");
      await until(
        () => shell("cat /proc/[0-9]*/cmdline | tr '\\0' ' '"),
        (list) => !list.includes("sleep 28"),
      );
      expect(await shell("ls")).not.toContain("over");
      await client.close();
    });

    test("the sandboxes of a killed server are elsewhere for everybody, and nobody gets a new one in silence", async () => {
      const dying = await services.start({ config: CONFIG });
      const made = await call(dying.url, "code_run", { code: "x = 1" }, ada);
      const { session_id } = made.body.result?.["structuredContent"] ?? {};
      const there = await call(servers[0]!.url, "code_run", { code: "x", session_id }, ada);
      expect(there.body.result?.["structuredContent"]).toMatchObject({ value: "1" });
      dying.child.kill("SIGKILL");
      await dying.exit();
      const says = async (): Promise<string> => {
        const { body } = await call(servers[0]!.url, "code_run", { code: "x", session_id }, ada);
        expect(body.result).toMatchObject({ isError: true });
        return String(body.result?.["content"][0].text);
      };
      expect(await says()).toContain("does not answer");
      expect(await until(says, (text) => text.includes("is gone"))).toContain("create a new session");
      const { body } = await call(servers[1]!.url, "sandbox_list", {}, ada);
      expect(JSON.stringify(body.result)).not.toContain(session_id);
      expect(await services.verify()).toMatchObject({ code: 0 });
    });

    test("[004-R11.8] a call for a sandbox of another server is one trace through both", async () => {
      const collector = await OtlpCollector.start();
      const config = { ...CONFIG, telemetry: { otlp: { endpoint: collector.endpoint } } };
      const [home, other] = await Promise.all([services.start({ config }), services.start({ config })]);
      const first = await call(home.url, "code_run", { code: "x = 41" }, ada);
      const { session_id } = first.body.result?.["structuredContent"] ?? {};
      const traceId = "0af7651916cd43dd8448eb211c80319c";
      const _meta = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, tracestate: "vendor=1" };
      const args = { name: "code_run", arguments: { code: "x + 1", session_id }, _meta };
      const second = await rpc(other.url, "tools/call", args, ada);
      expect(second.body.result?.["structuredContent"]).toMatchObject({ value: "42" });
      await Promise.all([home.stop(), other.stop()]);
      const spans = collector.of(traceId);
      const way: string[] = [];
      for (
        let at = spans.find(({ name }) => name === "interpreter.run");
        at !== undefined;
        at = spans.find(({ spanId }) => spanId === at?.parentSpanId)
      )
        way.unshift(at.name);
      const calledHere = "tools/call code_run > run > forward";
      const servedThere = "forwarded tool > guest code.run > code.run > interpreter.run";
      expect(way.join(" > ")).toBe(`${calledHere} > ${servedThere}`);
      expect(new Set(spans.map(({ traceState }) => traceState))).toEqual(new Set(["vendor=1"]));
    });
  },
);
