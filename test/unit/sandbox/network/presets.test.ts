import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { presetHosts, readPreset } from "../../../../src/sandbox/network/presets.ts";
import { temporaryFolder } from "../../config/temporary-folder.ts";
import { mkdirSync, writeFileSync } from "node:fs";

const NO_TOOL = async (): Promise<string> => await Promise.reject(new Error("no such tool"));

function home(files: Readonly<Record<string, string>>): string {
  const folder = temporaryFolder();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

function sources(files: Readonly<Record<string, string>> = {}, env: Record<string, string> = {}) {
  return { env, homeFolder: home(files), systemFiles: [], runTool: NO_TOOL };
}

describe("pip", () => {
  const conf = `[global]
timeout = 5
index-url = https://user:secret@pip.example.com/simple
extra-index-url =
    http://one.example.com:8081/simple
    https://two.example.com/simple
find-links = /some/folder
`;

  test("takes hosts and ports from pip.conf, and no credentials", async () => {
    const preset = await readPreset("pip", sources({ ".config/pip/pip.conf": conf }));
    expect(preset).toEqual({
      rules: ["pip.example.com:443", "one.example.com:8081", "two.example.com:443"],
      env: {
        PIP_INDEX_URL: "https://pip.example.com/simple",
        PIP_EXTRA_INDEX_URL: "http://one.example.com:8081/simple https://two.example.com/simple",
      },
    });
  });

  test("lets the environment win over the files, and the newer place over the older", async () => {
    const files = { ".pip/pip.conf": "[global]\nindex-url=https://old.example.com/", ".config/pip/pip.conf": conf };
    const env = { PIP_INDEX_URL: "https://env.example.com/simple", PIP_EXTRA_INDEX_URL: "" };
    expect((await presetHosts("pip", sources(files)))[0]).toBe("pip.example.com:443");
    expect((await presetHosts("pip", sources(files, env)))[0]).toBe("env.example.com:443");
  });

  test("asks pip when nothing is configured, and adds the host of its files", async () => {
    const runTool = async (): Promise<string> => "https://default.example.com/simple\nhttps://files.example.com/\n";
    expect(await presetHosts("pip", { ...sources(), runTool })).toEqual([
      "default.example.com:443",
      "files.example.com:443",
    ]);
  });

  test("says that it needs configuration when there is none", async () => {
    await expect(presetHosts("pip", sources())).rejects.toThrow("the preset pip finds no index");
  });
});

describe("npm", () => {
  const npmrc = `registry=https://npm.example.com/repo/
//npm.example.com/:_authToken=secret
@corp:registry=\${CORP_URL}
`;

  test("takes the registries from npmrc, and no credentials", async () => {
    const preset = await readPreset("npm", sources({ ".npmrc": npmrc }, { CORP_URL: "http://10.0.0.5:4873" }));
    expect(preset).toEqual({
      rules: ["npm.example.com:443", "10.0.0.5:4873"],
      env: {
        npm_config_registry: "https://npm.example.com/repo/",
        "npm_config_@corp:registry": "http://10.0.0.5:4873/",
      },
    });
  });

  test("lets the environment win over the files", async () => {
    const env = { NPM_CONFIG_REGISTRY: "https://env.example.com/" };
    expect((await presetHosts("npm", sources({ ".npmrc": npmrc }, env)))[0]).toBe("env.example.com:443");
  });

  test("asks npm when nothing is configured", async () => {
    const runTool = async (): Promise<string> => "https://default.example.com/";
    expect(await presetHosts("npm", { ...sources(), runTool })).toEqual(["default.example.com:443"]);
  });

  test("says that it needs configuration when there is none", async () => {
    await expect(presetHosts("npm", sources())).rejects.toThrow("the preset npm finds no registry");
  });
});

test("the real tools of this machine name an index without any configuration", async () => {
  const env = { PATH: process.env["PATH"], PIP_CONFIG_FILE: "/dev/null" };
  const homeFolder = temporaryFolder();
  expect(await presetHosts("npm", { env, homeFolder })).toEqual([expect.stringMatching(/^[a-z0-9.-]+:\d+$/)]);
  expect((await presetHosts("pip", { env, homeFolder })).length).toBeGreaterThan(0);
});
