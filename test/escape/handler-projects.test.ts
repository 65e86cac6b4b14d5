import { execFileSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { call, newFolder } from "../integration/governance-lab.ts";
import { type HttpServer, startHttp } from "../integration/harness.ts";

/** A sandbox writes the settings of the compiler beside handlers, in a mounted project that has none of its own. */
let server: HttpServer | undefined;
afterEach(() => server?.stop());

test.each([
  ["a FIFO", (path: string): void => void execFileSync("mkfifo", [path])],
  ["a device without an end", (path: string): void => symlinkSync("/dev/zero", path)],
])("a tsconfig.json that extends %s does not hold the start up", async (_what, make) => {
  const folder = newFolder();
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ extends: "./base.json" }));
  make(join(folder, "base.json"));
  writeFileSync(
    join(folder, "greet.ts"),
    "/** Greets. */\nexport function greet(name: string): string {\n  return `Hello ${name}`;\n}\n",
  );
  server = await startHttp({ config: { handlers: { paths: [join(folder, "*.ts")] }, sandbox: { enabled: false } } });
  const { body } = await call(server.url, "greet", { name: "Ada" });
  expect(body.result).toMatchObject({ content: [{ text: "Hello Ada" }] });
});
