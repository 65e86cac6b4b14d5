import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readInputs, stampedDigest, writeStamp } from "../../scripts/setup/build.mjs";
import { freePort } from "../services/free-port.ts";
import { pageText } from "./docs-pages.ts";
import { Terminal } from "./terminal.ts";
import { ReadmeWalk } from "./walk-readme.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const REPOSITORY = "https://github.com/owlclaw/owlclaw";

const folder = mkdtempSync(join(tmpdir(), "owlclaw-readme-"));
const walks: ReadmeWalk[] = [];

afterAll(async () => {
  for (const walk of walks) await walk.leave();
  rmSync(folder, { recursive: true, force: true });
}, 120_000);

/** What installing and building would make: both are tried elsewhere, and take their time. */
async function furnish(clone: string): Promise<void> {
  symlinkSync(join(ROOT, "node_modules"), join(clone, "node_modules"));
  const inputs = await readInputs(clone);
  if (!existsSync(join(ROOT, "dist/main.js")) || (await stampedDigest(ROOT)) !== inputs.digest) return;
  cpSync(join(ROOT, "dist"), join(clone, "dist"), { recursive: true });
  await writeStamp(clone, inputs);
}

test(
  "every command of the README works from a clean clone, and what it prints is what the README says",
  { timeout: 300_000 },
  async () => {
    const port = await freePort();
    const env = {
      PATH: `${dirname(process.execPath)}:${process.env["PATH"]}`,
      HOME: folder,
      LANG: "C.UTF-8",
      MCP_SERVER_PORT: String(port),
      OWLCLAW_NO_INSTALL: "1",
      // As the README tells other users to say.
      ...(process.getuid?.() === 0 ? {} : { MCP_SERVER_SANDBOX_LIMITS: "best-effort" }),
      // The clone is of this tree, under the address that the README names.
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: `url.${ROOT}.insteadOf`,
      GIT_CONFIG_VALUE_0: REPOSITORY,
    };
    const walk = new ReadmeWalk({
      markdown: readFileSync(join(ROOT, "README.md"), "utf8"),
      folder,
      port,
      open: (inClone) => Terminal.open({ cwd: inClone ? join(folder, "owlclaw") : folder, env }),
      cloned: furnish,
    });
    walks.push(walk);
    const screens = new Map<string, string>();
    for await (const { line, shown, status, screen } of walk.commands()) {
      expect({ line, status, screen }).toEqual({ line, status: 0, screen: expect.stringMatching(shown) });
      screens.set(line, screen);
    }
    expect(screens.size).toBeGreaterThanOrEqual(14);
    const doctor = screens.get("./owlclaw mcp-server doctor") ?? "";
    expect(checksIn(doctor).length).toBeGreaterThan(10);
    expect(checksIn(pageText("docs/operations.md"))).toEqual(checksIn(doctor));
    // The server that goes on is the one that is open to others, and the token is the one that its reader made.
    const token = screens.get("./owlclaw mcp-server token create --sub ada --expires 1h")?.trim();
    expect(await statusOf(port, {})).toBe(401);
    expect(await statusOf(port, { Authorization: `Bearer ${token ?? ""}` })).toBe(200);
  },
);

/** The rows of the doctor's table, without what it says about each. */
function checksIn(text: string): readonly string[] {
  return [...text.matchAll(/^(?:ok|warning|failed) +(\S+(?: \S+)* {2,}\S+(?: \S+)*) {2}/gm)].map(([, row = ""]) =>
    row.replaceAll(/ {2,}/g, ": "),
  );
}

async function statusOf(port: number, headers: Readonly<Record<string, string>>): Promise<number> {
  const { status } = await fetch(`http://localhost:${port}/mcp`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
  });
  return status;
}
