import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { call, connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { AUTH, PageOperator, PageStream, token } from "./dashboard-lab.ts";

const SCRIPT = "<script>alert(1)</script>";
const NAMES = [
  "<img src=x onerror=alert(1)>.html",
  'a"; filename="b.html',
  "line\r\nset-cookie: x=y",
  "ünïcode \u{1F989}",
  "%2e%2e",
];

let server: Server;
let eve: Client;
let root: PageOperator;
let name: string;
let sessionId: string;

beforeAll(async () => {
  server = new Server(makePlace(), AUTH);
  const { origin } = new URL(await server.url());
  eve = await connectHttp(`${origin}/mcp`, { authorization: `Bearer ${await token(`eve ${SCRIPT}`)}` });
  root = await PageOperator.byToken(origin);
  const { structuredContent } = await call(eve, "sandbox_create", { labels: { note: SCRIPT } });
  sessionId = String(structuredContent?.["session_id"]);
  name = (await root.get("now")).json.sandboxes[0].id;
  for (const path of NAMES) await call(eve, "file_write", { path, content: SCRIPT, session_id: sessionId });
});

afterAll(() => server.stop());

const at = (what: string, path: string): string => `sandboxes/${name}/${what}?path=${encodeURIComponent(path)}`;

describe("what a sandbox says", () => {
  test.each(NAMES)("comes out of a file as an attachment and nothing else: %j", async (path) => {
    const { status, headers, text } = await root.get(at("file", path));
    expect([status, text]).toEqual([200, SCRIPT]);
    expect(headers).toMatchObject({
      "content-type": "application/octet-stream",
      "x-content-type-options": "nosniff",
      "content-security-policy": expect.stringContaining("sandbox"),
    });
    expect(headers["content-disposition"]).toMatch(/^attachment; filename="[\w.-]+"; filename\*=UTF-8''[\w.%~!-]+$/);
    expect(headers["set-cookie"]).toBeUndefined();
  });

  test("is JSON everywhere else: names, texts, labels, output and who it belongs to", async () => {
    const names = [
      `sandboxes/${name}`,
      `sandboxes/${name}/files`,
      `sandboxes/${name}/changes`,
      "now",
      "ledger",
      "clients",
    ];
    for (const asked of [...names, at("text", NAMES[0] ?? "")]) {
      const { status, headers } = await root.get(asked);
      expect([asked, status, headers["content-type"], headers["x-content-type-options"]]).toEqual([
        asked,
        200,
        "application/json",
        "nosniff",
      ]);
    }
    const stream = await PageStream.open(root, `sandboxes/${name}/activity`);
    await call(eve, "shell_exec", {
      command: `printf '%s\\n\\nevent: now\\ndata: {}\\n\\n' '${SCRIPT}'`,
      session_id: sessionId,
    });
    const { event, data } = await stream.find(({ data: each }) => each.stream === "stdout");
    expect([event, data.text]).toEqual(["activity", `${SCRIPT}\n\nevent: now\ndata: {}\n\n`]);
    expect(stream.events.every((each) => each.event === "activity")).toBe(true);
    expect(stream.response.headers["x-content-type-options"]).toBe("nosniff");
    stream.close();
  });

  test("cannot make an operator's download leave the workspace, by a link or by a name", async () => {
    await call(eve, "shell_exec", {
      command: "ln -sf /etc/passwd p; ln -sf / r; mkdir -p d; ln -sf ../../etc d/e",
      session_id: sessionId,
    });
    for (const path of ["p", "r/etc/passwd", "d/e/passwd", "./p", "d/../p", "//etc/passwd", "/proc/1/environ"]) {
      for (const what of ["file", "text", "files"]) {
        const { status, text } = await root.get(at(what, path));
        expect([path, what, status >= 400, text.includes("root:x")]).toEqual([path, what, true, false]);
      }
    }
  });

  test("opens no sandbox: no answer holds the id that would", async () => {
    const asked = [
      "now",
      "ledger?limit=100",
      `sandboxes/${name}`,
      "approvals",
      "clients",
      `sandboxes/${name}/processes`,
    ];
    for (const each of asked) expect((await root.get(each)).text).not.toContain(sessionId);
    expect((await root.get(`sandboxes/${sessionId}`)).status).toBe(404);
    expect((await root.post(`sandboxes/${sessionId}/destroy`)).status).toBe(404);
  });
});

describe("another client", () => {
  test("has no part in the page's API with a token of its own, whatever it asks for", async () => {
    const authorization = `Bearer ${await token("mallory")}`;
    const { cookie: _, "x-owlclaw-csrf": __, ...rest } = root.headers;
    for (const path of [`sandboxes/${name}`, `sandboxes/${name}/activity`, at("file", "d")]) {
      expect((await root.send(path, { headers: { ...rest, cookie: "", authorization } })).status).toBe(401);
    }
    for (const path of ["takeover", "stop", "terminal"]) {
      const sent = { method: "POST", body: "{}", headers: { ...rest, cookie: "", authorization } };
      expect((await root.send(`sandboxes/${name}/${path}`, sent)).status).toBe(401);
    }
  });
});
