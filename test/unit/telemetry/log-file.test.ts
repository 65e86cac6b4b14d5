import { chmodSync, existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { LogFile } from "../../../src/telemetry/log-file.ts";
import { temporaryFolder } from "../config/temporary-folder.ts";

function openFile(options: { readonly maxBytes?: number; readonly keep?: number } = {}) {
  const troubles: unknown[] = [];
  const file = path.join(temporaryFolder({}), "logs", "owlclaw.log");
  const onTrouble = (error: unknown): void => void troubles.push(error);
  const log = new LogFile({ path: file, maxBytes: 100, keep: 2, ...options, onTrouble });
  return { file, log, troubles };
}

const LINE = `${"x".repeat(39)}\n`;

test("lines are appended, to a file that only its owner reads", () => {
  const { file, log } = openFile();
  log.write("a\n");
  log.write("b\n");
  log.close();
  expect(readFileSync(file, "utf8")).toBe("a\nb\n");
  expect(statSync(file).mode & 0o777).toBe(0o600);
});

test("a full file is moved aside, and only so many older ones stay", () => {
  const { file, log } = openFile();
  for (let count = 1; count <= 9; count += 1) log.write(`${count}${LINE.slice(1)}`);
  log.close();
  expect(readFileSync(file, "utf8").at(0)).toBe("9");
  expect(
    readFileSync(`${file}.1`, "utf8")
      .split("\n")
      .map((line) => line.at(0)),
  ).toEqual(["7", "8", undefined]);
  expect(
    readFileSync(`${file}.2`, "utf8")
      .split("\n")
      .map((line) => line.at(0)),
  ).toEqual(["5", "6", undefined]);
  expect(existsSync(`${file}.3`)).toBe(false);
});

test("a file that was there before counts into the size", () => {
  const { file, log } = openFile();
  log.close();
  writeFileSync(file, "y".repeat(90));
  const again = new LogFile({ path: file, maxBytes: 100, keep: 1, onTrouble: () => undefined });
  again.write(LINE);
  again.close();
  expect(readFileSync(file, "utf8")).toBe(LINE);
});

test("a file that another program moved away is begun anew", () => {
  const { file, log } = openFile();
  log.write("before\n");
  renameSync(file, `${file}.moved`);
  log.write("after\n");
  log.close();
  expect(readFileSync(file, "utf8")).toBe("after\n");
});

test("a file that cannot be written costs lines and is told of once", () => {
  const { file, log, troubles } = openFile();
  const folder = path.dirname(file);
  rmSync(folder, { recursive: true });
  writeFileSync(folder, "");
  chmodSync(folder, 0o400);
  log.write("lost\n");
  log.write("lost, too\n");
  expect(troubles).toHaveLength(1);
});
