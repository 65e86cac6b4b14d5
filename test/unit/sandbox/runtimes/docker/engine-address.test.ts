import { expect, test } from "vitest";
import { describeAddress, parseEngineAddress } from "../../../../../src/sandbox/runtimes/docker/engine-address.ts";

test.each([
  ["", { kind: "socket", path: "/var/run/docker.sock" }],
  ["unix:///run/podman/podman.sock", { kind: "socket", path: "/run/podman/podman.sock" }],
  ["/run/docker.sock", { kind: "socket", path: "/run/docker.sock" }],
  ["tcp://127.0.0.1:1234", { kind: "tcp", host: "127.0.0.1", port: 1234, tls: undefined }],
  ["tcp://localhost", { kind: "tcp", host: "localhost", port: 2375, tls: undefined }],
  ["http://[::1]:2375", { kind: "tcp", host: "::1", port: 2375, tls: undefined }],
])("%j is an engine", (text, address) => {
  expect(parseEngineAddress(text, "")).toEqual(address);
});

test.each(["tcp://engine.example.com:2375", "http://10.0.0.5:2375", "tcp://127.0.0.1.example.com:2375"])(
  "%s is refused without TLS: whoever reaches it owns the machine",
  (text) => {
    expect(() => parseEngineAddress(text, "")).toThrow("without TLS");
  },
);

test.each(["ssh://user@host", "npipe:////./pipe/docker_engine", "engine", "tcp://"])("%s cannot be used", (text) => {
  expect(() => parseEngineAddress(text, "")).toThrow("not a usable address of an engine");
});

test("certificates that cannot be read are named", () => {
  expect(() => parseEngineAddress("tcp://engine.example.com", "/nowhere")).toThrow(/certificates .*\/nowhere\/ca\.pem/);
});

test("an address is written as a URL has it", () => {
  expect(describeAddress({ kind: "tcp", host: "::1", port: 2376, tls: undefined })).toBe("[::1]:2376");
});
