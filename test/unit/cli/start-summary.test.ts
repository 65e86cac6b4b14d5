import { describe, expect, test } from "vitest";
import { startSummary } from "../../../src/cli/start-summary.ts";
import { loadConfig } from "../../../src/config/load.ts";
import type { SandboxHealth } from "../../../src/sandbox/sandbox-runtime.ts";
import { temporaryFolder } from "../config/temporary-folder.ts";

const SECRET = "a-secret-of-at-least-thirty-two-bytes";

async function summary(env: Record<string, string>, url?: string) {
  const loaded = await loadConfig({ env: { SANDBOX_ROOT: "/data", ...env }, cwd: temporaryFolder() });
  const sandboxes = { status: "ok", runtime: "bubblewrap" } as const;
  return startSummary(loaded, { version: "1.2.3", sandboxes, ...(url === undefined ? {} : { url }) });
}

describe("[004-R10.5] [004-R12.10] the summary at start", () => {
  test("names address, transport, mode, auth, handlers and config file", async () => {
    const { fields } = await summary(
      { MCP_SERVER_TRANSPORT: "http", MCP_SERVER_HANDLERS_PATHS: "a.ts,b.ts" },
      "http://localhost:8080/mcp",
    );
    expect(fields).toEqual({
      version: "1.2.3",
      address: "http://localhost:8080/mcp",
      transport: "http",
      mode: "production",
      auth: "off",
      tls: "off",
      cors: "off",
      sandboxes: "bubblewrap",
      sandboxTemplate: "python",
      sandboxLimits: "required",
      sandboxNetwork: "none",
      sandboxVolumes: "none",
      handlerPaths: 2,
      toolTimeoutSeconds: 300,
      logLevel: "info",
      dataFolder: "/data",
      configFile: "none",
    });
  });

  test("says the same to a person", async () => {
    const { lines } = await summary({});
    expect(lines[0]).toBe("OwlClaw MCP server 1.2.3");
    expect(lines.join("\n")).toMatch(/address +stdin and stdout\n +transport +stdio\n/);
    expect(lines.join("\n")).toMatch(/config file +none/);
  });

  test("never holds a secret", async () => {
    const { fields, lines } = await summary({
      MCP_SERVER_TRANSPORT: "http",
      MCP_AUTH_ENABLED: "true",
      MCP_AUTH_JWT_SECRET: SECRET,
    });
    expect(fields["auth"]).toBe("on (shared secret)");
    expect(JSON.stringify([fields, lines])).not.toContain(SECRET);
  });

  test("says what sandboxes may reach, and that there are none when they are off or cannot run", async () => {
    const env = {
      SANDBOX_ROOT: "/data",
      MCP_SERVER_SANDBOX_NETWORK_ALLOW: "pip,a.example",
      MCP_SERVER_SANDBOX_NETWORK_TEMPLATES: '{"node":["npm"]}',
      MCP_SERVER_SANDBOX_VOLUMES: "/usr/share:/data:ro",
      MCP_SERVER_SANDBOX_LIMITS: "best-effort",
      MCP_SERVER_SANDBOX_ENV: '{"TOKEN":"of-a-sandbox"}',
    };
    const loaded = await loadConfig({ env, cwd: temporaryFolder() });
    const of = (sandboxes?: SandboxHealth) => startSummary(loaded, { version: "1.2.3", sandboxes });
    const trouble = { reason: "no cgroup for this user", hint: "Start it as root.", publicReason: "it is broken" };
    const broken = of({ status: "unavailable", ...trouble });
    expect(broken.fields).toMatchObject({
      sandboxes: "unavailable: no cgroup for this user",
      sandboxLimits: "best-effort",
      sandboxNetwork: "pip, a.example; node: npm",
      sandboxVolumes: "/usr/share:/data:ro",
    });
    expect(broken.lines.join("\n")).toContain("warning: no sandbox can run. Start it as root.");
    expect(JSON.stringify(broken)).not.toContain("of-a-sandbox");
    expect(of().fields).toMatchObject({ sandboxes: "off" });
    expect(of().fields).not.toHaveProperty("sandboxNetwork");
  });

  test("warns when anyone can come in", async () => {
    const { lines } = await summary({
      MCP_SERVER_TRANSPORT: "http",
      MCP_SERVER_HOST: "0.0.0.0",
      MCP_SERVER_ALLOW_UNAUTHENTICATED: "true",
    });
    expect(lines.join("\n")).toContain("warning: anyone who reaches this address");
  });
});
