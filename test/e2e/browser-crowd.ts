import type { Client } from "@modelcontextprotocol/client";
import { expect } from "vitest";
import { type Inside, openInside } from "../escape/sandbox-lab.ts";
import { HOME, serveSite } from "./browser-site.ts";

/** Sandboxes with a browser each, all at the same time, all at the same address: what one of them keeps, no other sees. */
export async function openCrowd(client: Client, count: number): Promise<Inside[]> {
  const names = Array.from({ length: count }, (_, index) => `visitor-${index + 1}`);
  return await Promise.all(names.map((name) => visit(client, name)));
}

async function visit(client: Client, name: string): Promise<Inside> {
  const inside = await openInside(client);
  await serveSite(client, { session_id: inside.id });
  const evaluate = async (expression: string): Promise<unknown> => {
    const { structuredContent, content } = await inside.call("browser_evaluate", { expression, timeout_seconds: 60 });
    return structuredContent?.["value"] ?? content[0]?.text;
  };
  await inside.call("browser_goto", { url: `${HOME}/cookie?who=${name}`, timeout_seconds: 60 });
  await evaluate(`localStorage.setItem("who", (localStorage.getItem("who") ?? "") + ${JSON.stringify(name)})`);
  await evaluate(`document.title = ${JSON.stringify(name)}`);
  expect(await evaluate("[document.title, document.cookie, localStorage.getItem('who')]")).toBe(
    JSON.stringify([name, `who=${name}`, name]),
  );
  return inside;
}
