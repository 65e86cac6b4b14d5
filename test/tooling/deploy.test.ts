import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { CONFIG_KEYS } from "../../src/config/keys.ts";
import { CONFIG_FILE_VARIABLE } from "../../src/config/text-layers.ts";
import { describeUnless } from "../setup/mandatory.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(ROOT, path), "utf8");
const { version, mcpName, name } = JSON.parse(read("package.json")) as Record<string, string>;
const VARIABLES = new Set([...CONFIG_KEYS.flatMap(({ env }) => env), CONFIG_FILE_VARIABLE]);

/** What the registry of MCP servers asks of such a file, in our own words. */
const SERVER_JSON = {
  type: "object",
  required: ["$schema", "name", "description", "version", "packages"],
  additionalProperties: false,
  properties: {
    $schema: {
      type: "string",
      pattern: String.raw`^https://static\.modelcontextprotocol\.io/schemas/\d{4}-\d\d-\d\d/server\.schema\.json$`,
    },
    name: { type: "string", minLength: 3, maxLength: 200, pattern: "^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$" },
    title: { type: "string", minLength: 1, maxLength: 100 },
    description: { type: "string", minLength: 1, maxLength: 100 },
    version: { type: "string", maxLength: 255 },
    websiteUrl: { type: "string", pattern: "^https://" },
    repository: { type: "object", required: ["url", "source"] },
    packages: {
      type: "array",
      minItems: 1,
      items: {
        type: "object",
        required: ["registryType", "identifier", "version", "transport"],
        properties: {
          registryType: { enum: ["npm", "oci", "mcpb"] },
          transport: {
            type: "object",
            required: ["type"],
            properties: { type: { enum: ["stdio", "streamable-http"] } },
          },
          packageArguments: {
            type: "array",
            items: { type: "object", required: ["type", "value"], properties: { type: { const: "positional" } } },
          },
          environmentVariables: { type: "array", items: { type: "object", required: ["name", "description"] } },
        },
      },
    },
  },
};

interface ServerJson {
  readonly name: string;
  readonly version: string;
  readonly packages: readonly {
    readonly identifier: string;
    readonly version: string;
    readonly environmentVariables: readonly { readonly name: string }[];
    readonly packageArguments: readonly { readonly value: string }[];
  }[];
}

describe("server.json", () => {
  const file = JSON.parse(read("server.json")) as ServerJson;

  test("has what the registry wants, and is about this package in this version", () => {
    const check = new Ajv2020().compile(SERVER_JSON);
    expect(check(file) ? [] : check.errors).toEqual([]);
    expect(file).toMatchObject({ name: mcpName, version });
    expect(file.packages[0]).toMatchObject({ identifier: name, version });
  });

  test("names commands and variables that exist", () => {
    const [first] = file.packages;
    const command = first?.packageArguments.map(({ value }) => value) ?? [];
    expect(spawnSync(process.execPath, [join(ROOT, "dist/main.js"), ...command, "--help"]).status).toBe(0);
    for (const variable of first?.environmentVariables ?? []) expect(VARIABLES).toContain(variable.name);
  });
});

describe("the bundle for desktop clients", () => {
  const manifest = JSON.parse(read("deploy/mcpb/manifest.json")) as Record<string, unknown>;

  test("has a manifest that the official tool and its schema accept, in this version", () => {
    const mcpb = join(ROOT, "test/clients/node_modules/@anthropic-ai/mcpb/dist");
    const schema = JSON.parse(
      readFileSync(join(mcpb, `mcpb-manifest-v${String(manifest["manifest_version"])}.schema.json`), "utf8"),
    ) as Record<string, unknown>;
    const check = new Ajv2020({ strict: false, validateFormats: false }).compile(
      Object.fromEntries(Object.entries(schema).filter(([key]) => key !== "$schema")),
    );
    expect(check(manifest) ? [] : check.errors).toEqual([]);
    const tool = [join(mcpb, "cli/cli.js"), "validate", join(ROOT, "deploy/mcpb/manifest.json")];
    expect(spawnSync(process.execPath, tool, { encoding: "utf8" })).toMatchObject({ status: 0 });
    expect(manifest).toMatchObject({ version, name });
  });

  test("lists the tools that the server has", () => {
    const args = [join(ROOT, "dist/main.js"), "mcp-server", "tools", "list", "--json"];
    const env = { ...process.env, SANDBOX_ROOT: temporaryFolder({}) };
    const listed = JSON.parse(execFileSync(process.execPath, args, { encoding: "utf8", env })) as {
      tools: { name: string }[];
    };
    const own = manifest["tools"] as { name: string }[];
    expect(own.map((tool) => tool.name)).toEqual(listed.tools.map((tool) => tool.name));
  });
});

describe("the systemd unit", () => {
  test("reloads by SIGHUP, gives calls their time to end, and hands groups to sandboxes", () => {
    const text = read("deploy/systemd/owlclaw.service");
    for (const line of [
      "ExecReload=/bin/kill -HUP $MAINPID",
      "TimeoutStopSec=45",
      "Delegate=cpu memory pids",
      "User=owlclaw",
    ])
      expect(text.split("\n")).toContain(line);
  });
});

describe("the server's image", () => {
  const lines = read("deploy/docker/server.Dockerfile").split("\n");

  test("ends as an ordinary user, listens on one port and stops by the signal that the server knows", () => {
    expect(lines.findLast((line) => line.startsWith("USER "))).toBe("USER 10001:10001");
    expect(lines.filter((line) => line.startsWith("EXPOSE"))).toEqual(["EXPOSE 8080"]);
    expect(lines).toContain("STOPSIGNAL SIGTERM");
    expect(lines.filter((line) => /^(ADD|RUN .*(curl|wget))/.test(line))).toEqual([]);
  });

  test("sets variables that exist", () => {
    const text = lines.join("\n");
    const set = /^ENV ([\s\S]*?[^\\])\n/m.exec(text)?.[1] ?? "";
    const names = [...set.matchAll(/([A-Z_]+)=/g)].map(([, variable]) => variable);
    expect(names.length).toBeGreaterThan(2);
    for (const variable of names) expect(VARIABLES).toContain(variable);
  });
});

test("both images have the same letters for pictures and pages", () => {
  const fontsOf = (recipe: string): string[] => packagesOf(recipe).filter((package_) => package_.startsWith("fonts-"));
  expect(fontsOf("sandbox")).toEqual(["fonts-wqy-microhei"]);
  expect(fontsOf("server")).toEqual(fontsOf("sandbox"));
});

function packagesOf(recipe: string): string[] {
  return /^ARG PACKAGES="([^"]+)"$/m.exec(read(`deploy/docker/${recipe}.Dockerfile`))?.[1]?.split(" ") ?? [];
}

const NO_APT = spawnSync("apt-cache", ["--version"]).status === 0 ? undefined : "there is no apt here";

describeUnless(NO_APT, "the image of sandboxes", () => {
  test("asks for packages that Debian has", () => {
    const names = packagesOf("sandbox");
    expect(names).toEqual(expect.arrayContaining(["chromium", "python3", "tini"]));
    const found = execFileSync("apt-cache", ["policy", ...names], { encoding: "utf8" });
    const known = [...found.matchAll(/^(\S+):\n.*\n {2}Candidate: \d/gm)].map(([, package_]) => package_);
    expect(names.filter((each) => !known.includes(each))).toEqual([]);
  });
});
