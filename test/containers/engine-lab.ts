import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { connectHttp, makePlace, type Place, Server, type Settings } from "../e2e/sandbox-client.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { settingsFor } from "./engine-runtime.ts";

export const PATIENCE = { timeout: 120_000, interval: 100 };

export interface Opened {
  readonly place: Place;
  readonly server: Server;
  readonly client: Client;
  readonly origin: string;
  health(): Promise<number>;
}

export interface EngineLab {
  open(sandbox?: Record<string, unknown>, place?: Place, more?: Settings): Promise<Opened>;
  /** Of the servers of one data folder: others of the same file may live at the same time. */
  containersOf(place: Place, ...more: string[]): Promise<string[]>;
  workspacesOf(place: Place): Promise<string[]>;
  containerIn(log: Server["log"], message: string): unknown;
}

/** Servers on an engine, and what the engine has of them. */
export function engineLab(engine: () => ContainerEngine): EngineLab {
  const lines = (text: string): string[] => text.split("\n").filter((line) => line !== "");
  const label = ({ dataFolder }: Place): string =>
    `label=owlclaw.data=${readFileSync(join(dataFolder, "docker", "id"), "utf8")}`;
  return {
    open: async (sandbox = {}, place = makePlace(), more = {}) => {
      const server = new Server(place, { ...more, sandbox: { ...settingsFor(engine()), ...sandbox } });
      const url = await server.url();
      const client = await connectHttp(url);
      const { origin } = new URL(url);
      return { place, server, client, origin, health: async () => (await fetch(new URL("/health", url))).status };
    },
    containersOf: async (place, ...more) =>
      lines(await engine().cli("ps", "--no-trunc", "--filter", label(place), "--format", "{{.ID}}", ...more)),
    workspacesOf: async (place) => lines(await engine().cli("volume", "ls", "-q", "--filter", label(place))),
    containerIn: (log, message) => log.findLast((line) => line["message"] === message)?.["container"],
  };
}
