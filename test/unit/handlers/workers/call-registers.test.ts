import { closeSync, openSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CallRegisters } from "../../../../src/handlers/workers/call-registers.ts";

let server: CallRegisters;
let worker: CallRegisters;
let fd: number;

beforeEach(() => {
  server = CallRegisters.create();
  fd = openSync(`/proc/self/fd/${server.fd}`, "r+");
  worker = CallRegisters.inherited(fd);
});

afterEach(() => {
  closeSync(fd);
  server.close();
});

test("the server sees what the worker started last", () => {
  expect(worker.start(1)).toBe(true);
  expect(worker.start(2)).toBe(true);
  expect(server.revoke()).toBe(2);
});

test("what was taken back is not run, until the server gives back the right to run", () => {
  expect(server.revoke()).toBe(0);
  expect(worker.start(1)).toBe(false);
  server.restore();
  expect(worker.start(2)).toBe(true);
});
