import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { runCli } from "./cli-process.ts";
import { type HttpServer, startHttp } from "./harness.ts";
import { connect, type TestClient } from "./sdk-clients.ts";

const SHOP = path.resolve(import.meta.dirname, "../../examples/shop");
const files = { skills: { dir: path.join(SHOP, "skills") } };
const paths = [path.join(SHOP, "handlers/*.ts"), path.join(SHOP, "handlers/*.py")];

/** The example that the README walks through. */
describe.each([false, true])("the shop, with inlineSkills: %s", (inlineSkills) => {
  let server: HttpServer;
  let client: TestClient;

  beforeAll(async () => {
    // The limits of somebody who says nothing of them, as the command has: tools tell theirs.
    server = await startHttp({ config: { ...files, handlers: { paths, inlineSkills }, governance: {} } });
    client = await connect({ client: "v2", transport: "http", version: "2025-11-25" }, server.url);
  });

  afterAll(async () => {
    await client.close();
    await server.stop();
  });

  test("[004-R4.6] a tool says which skill is about it: its summary and URI, or all of it", async () => {
    const { tools } = await client.listTools();
    const refund = tools.find(({ name }: { name: string }) => name === "order_refund");
    const text = readFileSync(path.join(SHOP, "skills/orders/refund/SKILL.md"), "utf8");
    expect(refund.description).toContain("Pays the whole amount of a returned order back.");
    expect(refund.description).toContain("skill://orders/refund");
    expect(refund.description).toContain("Pays money back for an order that came back.");
    expect(refund.description.includes(text.trim())).toBe(inlineSkills);
  });

  test("[004-R4.2] tools list --json prints what a client of the newest revision gets", async () => {
    const door = { client: "v2", transport: "http", version: "2026-07-28", mode: { mode: "auto" } } as const;
    const newest = await connect(door, server.url);
    const { tools } = await newest.listTools();
    await newest.close();
    const root = mkdtempSync(path.join(tmpdir(), "owlclaw-shop-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const { out } = await runCli(["mcp-server", "tools", "list", "--json"], {
      env: {
        SANDBOX_ROOT: root,
        MCP_SERVER_SKILLS_DIR: files.skills.dir,
        MCP_SERVER_HANDLERS_PATHS: paths.join(","),
        MCP_SERVER_HANDLERS_INLINE_SKILLS: String(inlineSkills),
      },
    });
    expect(JSON.parse(out).tools).toEqual(tools);
  });

  test("its functions and its knowledge answer", async () => {
    const found = await client.callTool({ name: "order_find", arguments: { id: "A-1001" } });
    expect(found["structuredContent"]).toEqual({ id: "A-1001", customer: "Ada", total: 120, state: "sent" });
    const pieces = await client.callTool({ name: "stock_level", arguments: { sku: "OWL-MUG" } });
    expect(pieces["content"]).toEqual([{ type: "text", text: "43" }]);
    const searched = await client.callTool({ name: "skill_search", arguments: { query: "refund" } });
    expect(searched["structuredContent"].skills[0].uri).toBe("skill://orders/refund");
    const { contents } = await client.readResource({ uri: "skill://orders/refund/references/limits.md" });
    expect(contents[0].text).toContain("up to 100 €");
  });
});
