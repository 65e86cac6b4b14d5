import { join, resolve } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import {
  type Called,
  call,
  connect,
  makePlace,
  type Place,
  readText,
  type Settings,
  type TransportName,
} from "./sandbox-client.ts";

export const SITE = resolve(import.meta.dirname, "../fixtures/browser-site");

/** The site as the browser in the sandbox finds it. */
export const HOME = "http://localhost:8000";

export const ALL_TOOLSETS = ["sandbox", "code", "shell", "files", "browser", "browser-extra"];

export function siteSettings(settings: Settings = {}): Settings {
  const { sandbox = {}, ...rest } = settings;
  return { tools: { toolsets: ALL_TOOLSETS }, ...rest, sandbox: { volumes: [`${SITE}:/site:ro`], ...sandbox } };
}

/** A client whose default sandbox serves the site to itself. */
export async function connectToSite(
  transport: TransportName,
  settings: Settings = {},
  place: Place = makePlace(),
): Promise<Client> {
  const client = await connect(transport, place, siteSettings(settings));
  await serveSite(client);
  return client;
}

export async function serveSite(client: Client, session: Record<string, unknown> = {}): Promise<void> {
  const started = await call(client, "shell_exec", {
    command: "exec node /site/server.mjs",
    background: true,
    ...session,
  });
  const process_id = started.structuredContent?.["process_id"];
  for (let cursor: unknown = 0, said = ""; !said.includes("ready 8000") || !said.includes("ready 8001");) {
    const output = await call(client, "shell_output", { process_id, cursor, wait_seconds: 5, ...session });
    const { text, is_running } = readText(output).json;
    said += String(text);
    cursor = readText(output).json["cursor"];
    if (is_running === false) throw new Error(`the site ended: ${said}`);
  }
}

export async function goto(client: Client, path: string): Promise<Called> {
  return await call(client, "browser_goto", { url: `${HOME}${path}` });
}

export interface Snapshot {
  readonly text: string;
  readonly elements: string;
  readonly title: string;
  readonly url: string;
  readonly cursor?: string;
}

export async function snapshot(client: Client, args: Record<string, unknown> = {}): Promise<Snapshot> {
  const { structuredContent, content } = await call(client, "browser_snapshot", args);
  if (structuredContent === undefined) throw new Error(content[0]?.text);
  return structuredContent as unknown as Snapshot;
}

/** The ref of the element whose line has these words. */
export function refOf({ elements }: Snapshot, words: string): string {
  const line = elements.split("\n").find((candidate) => candidate.includes(words));
  const ref = /^\[(ref_\d+)\]/.exec(line ?? "")?.[1];
  if (ref === undefined) throw new Error(`no element has ${words}:\n${elements}`);
  return ref;
}

/** The colour of a pixel of a picture in the workspace, as in `255,0,0`. */
export async function pixel(client: Client, path: string, [x, y]: readonly [number, number]): Promise<string> {
  const code = `from PIL import Image\n",".join(map(str, Image.open(${JSON.stringify(join("/workspace", path))}).convert("RGB").getpixel((${x}, ${y}))))`;
  const { structuredContent } = await call(client, "code_run", { language: "python", code });
  return String(structuredContent?.["value"]).replaceAll("'", "");
}
