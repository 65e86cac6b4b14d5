import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";
import { toolNames } from "./governance-lab.ts";
import { BIN, environment, ServerProcess, startArguments, until } from "./harness.ts";

/** Which the server warns of when it has read it. */
const POLICY = "defaults: { hidden: [shell_exec] }";

interface HeldStart {
  readonly server: ServerProcess;
  readonly configFile: string;
  readonly policyFile: string;
  /** Gives back where the server listens. */
  release(): Promise<string>;
}

/** A server that has read its settings, and starts until it is released: it waits for the handler `late`. */
async function holdStart(): Promise<HeldStart> {
  const folder = temporaryFolder({ "policy.yaml": POLICY });
  const [policyFile = "", handler = "", reached = "", released = ""] = ["policy.yaml", "late.mjs", "reached", "go"].map(
    (name) => path.join(folder, name),
  );
  writeFileSync(
    handler,
    `import { existsSync, writeFileSync } from "node:fs";
import { defineHandler } from "owlclaw";
writeFileSync(${JSON.stringify(reached)}, "");
while (!existsSync(${JSON.stringify(released)})) await new Promise((resolve) => setTimeout(resolve, 10));
export const late = defineHandler({ name: "late", description: "Loads late", run: () => "here" });
`,
  );
  const sandbox = { enabled: false, root: path.join(folder, "data") };
  const config = { sandbox, handlers: { paths: [handler] }, governance: { policyFile } };
  const args = startArguments("http", { config });
  const server = new ServerProcess(
    spawn(process.execPath, [BIN, ...args], { env: environment(), stdio: ["ignore", "ignore", "pipe"] }),
  );
  onTestFinished(() => server.stop());
  await server.logged("policy warning");
  await until(
    () => existsSync(reached),
    (exists) => exists,
  );
  return {
    server,
    configFile: args.at(-1) ?? "",
    policyFile,
    release: async () => {
      writeFileSync(released, "");
      return String((await server.logged("listening"))["url"]);
    },
  };
}

test("a policy that is saved while the server starts is in force", async () => {
  const { server, policyFile, release } = await holdStart();
  writeFileSync(policyFile, "defaults: { hidden: [shell_exec, late] }");
  const url = await release();
  await server.logged("policy changed");
  expect(await toolNames(url)).toEqual([]);
});

test("a configuration that is saved while the server starts counts, and what needs a restart is named", async () => {
  const { server, configFile, release } = await holdStart();
  const config = JSON.parse(readFileSync(configFile, "utf8")) as Record<string, unknown>;
  const governance = { defaults: { hidden: ["late"] } };
  writeFileSync(configFile, JSON.stringify({ ...config, governance, tools: { timeoutSeconds: 7 } }));
  const url = await release();
  expect(await server.logged("these settings count after a restart")).toMatchObject({ keys: ["tools.timeoutSeconds"] });
  await server.logged("policy changed");
  expect(await toolNames(url)).toEqual([]);
});

test("SIGHUP while the server starts is remembered until it has started", async () => {
  const { server, release } = await holdStart();
  server.child.kill("SIGHUP");
  const url = await release();
  await server.logged("reloaded");
  const said = server.logs.map(({ message }) => message);
  expect(said.indexOf("reloading")).toBeGreaterThan(said.indexOf("listening"));
  expect(await toolNames(url)).toEqual(["late"]);
});
