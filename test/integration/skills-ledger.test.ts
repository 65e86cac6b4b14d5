import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runCli } from "./cli-process.ts";
import { startHttp } from "./harness.ts";
import { plain } from "./http-client.ts";
import { REFUND, SHOP, skillFolder } from "./skill-fixture.ts";

const dir = skillFolder(SHOP);

test("[004-R7.8] a read of a skill is in the ledger with the digest of what was read, and without its text", async () => {
  const root = mkdtempSync(path.join(tmpdir(), "owlclaw-skills-ledger-"));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const server = await startHttp({ config: { skills: { dir }, sandbox: { root, enabled: false } } });
  const uri = "skill://ecommerce/refund";
  const { body } = await plain(server.url, "resources/read", { uri });
  const [content] = body.result?.["contents"] ?? [];
  expect(content.text).toBe(REFUND);
  await server.stop();
  const { out } = await runCli(["mcp-server", "ledger", "list", "--json"], { env: { SANDBOX_ROOT: root } });
  expect(out).toContain(content._meta["io.owlclaw/content"].digest);
  expect(out).toContain(uri);
  expect(out).not.toContain("Check the amount");
});
