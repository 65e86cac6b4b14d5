import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type HttpServer, startHttp, until } from "../../integration/harness.ts";
import { plainCall } from "../../integration/http-client.ts";
import { text } from "../../integration/wire-messages.ts";

const folder = mkdtempSync(path.join(tmpdir(), "owlclaw-isolated-changes-"));
const data = mkdtempSync(path.join(tmpdir(), "owlclaw-isolated-data-"));
let server: HttpServer;

interface Edited {
  readonly file: string;
  readonly helper: string;
  readonly broken: string;
  helperText(n: number): string;
  fileText(n: number): string;
}

const EDITED: Readonly<Record<string, Edited>> = {
  ts: {
    file: "shop.ts",
    helper: "_price.ts",
    broken: "export const = ;",
    helperText: (n) => `export const PRICE = ${n};\n`,
    fileText: (n) => `import { PRICE } from "./_price.ts";
/** Says the version. */
export function version_ts(): string { return "${n} with price " + PRICE; }
/** Ends its process. */
export function die_ts(): void { process.exit(3); }
`,
  },
  py: {
    file: "shop.py",
    helper: "_price.py",
    broken: "def version_py(:\n",
    helperText: (n) => `PRICE = ${n}\n`,
    fileText: (n) => `import os
from _price import PRICE

def version_py() -> str:
    """Says the version."""
    return f"${n} with price {PRICE}"

def die_py() -> None:
    """Ends its process."""
    os._exit(3)
`,
  },
};

const write = (name: string, content: string): void => writeFileSync(path.join(folder, name), content);

beforeAll(async () => {
  for (const { file, helper, fileText, helperText } of Object.values(EDITED)) {
    write(helper, helperText(1));
    write(file, fileText(1));
  }
  server = await startHttp({
    config: {
      sandbox: { root: data, pool: { size: 0 }, limits: "best-effort" },
      handlers: { paths: [folder], isolation: "sandbox" },
    },
  });
});

afterAll(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
  rmSync(data, { recursive: true, force: true });
});

const call = async (name: string): Promise<string> => {
  const { body } = await plainCall(server.url, name);
  return text(body) ?? JSON.stringify(body);
};
const problems = (file: string): number =>
  server.logs.filter((line) => line["message"] === "handler file cannot be used" && line["file"] === file).length;

describe.each(Object.keys(EDITED))("a handler in a sandbox, %s", (language) => {
  const { file, helper, broken, fileText, helperText } = EDITED[language] as Edited;
  const version = `version_${language}`;
  const becomes = (expected: string): Promise<string> =>
    until(
      () => call(version),
      (answer) => answer === expected,
    );

  test("follows its file and what that imports", async () => {
    write(file, fileText(2));
    expect(await becomes("2 with price 1")).toBe("2 with price 1");
    write(helper, helperText(2));
    expect(await becomes("2 with price 2")).toBe("2 with price 2");
  });

  test("goes on as it was while the file and its helper are broken, in a new sandbox too", async () => {
    write(file, broken);
    write(helper, broken);
    await until(
      () => problems(path.join(folder, file)),
      (count) => count > 0,
    );
    expect(await call(version)).toBe("2 with price 2");
    for (let death = 0; death < 2; death += 1) {
      expect(await call(`die_${language}`)).toContain("exit code 3");
      expect(await call(version)).toBe("2 with price 2");
    }
  });

  test("has the new code when both are mended", async () => {
    write(helper, helperText(3));
    write(file, fileText(3));
    expect(await becomes("3 with price 3")).toBe("3 with price 3");
  });
});
