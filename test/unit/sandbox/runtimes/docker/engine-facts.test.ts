import { expect, test } from "vitest";
import { readEngineFacts } from "../../../../../src/sandbox/runtimes/docker/engine-facts.ts";
import { fakeEngine } from "./fake-engine.ts";

const ROOTFUL = { SecurityOptions: ["name=seccomp,profile=default"], Rootless: false };

test.each([
  ["Docker of root", { SecurityOptions: ["name=seccomp,profile=default", "name=cgroupns"] }, false],
  ["Docker of root with remapped users", { SecurityOptions: ["name=seccomp,profile=default", "name=userns"] }, true],
  ["rootless Docker", { SecurityOptions: ["name=seccomp,profile=default", "name=rootless"] }, true],
  ["Podman of root", ROOTFUL, false],
  // As Podman 4.3.1 answers: its security options do not say it.
  ["rootless Podman", { ...ROOTFUL, Rootless: true }, true],
])("%s maps users as its answers say", async (_name, info, mapsUsers) => {
  const version = { Version: "4.3.1", Os: "linux", Arch: "amd64" };
  const { host } = await fakeEngine((request, response) => {
    response.end(JSON.stringify(request.url === "/info" ? info : version));
  });
  expect(await readEngineFacts(host.engine, 5000)).toMatchObject({ mapsUsers });
});
