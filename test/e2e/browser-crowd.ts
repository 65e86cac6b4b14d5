import type { Client } from "@modelcontextprotocol/client";
import { expect } from "vitest";
import { type Inside, openInside } from "../escape/sandbox-lab.ts";
import { HOME, serveSite } from "./browser-site.ts";
import { call } from "./sandbox-client.ts";

/** How many start at the same time: more only wait for processors, and for longer than clients do. */
const WAVE = 4;

interface Visitor {
  readonly name: string;
  readonly inside: Inside;
}

/** Sandboxes with a browser each, all at the same address: what one of them keeps, no other sees, while all of them run. */
export async function openCrowd(client: Client, count: number): Promise<readonly string[]> {
  const visitors: Visitor[] = [];
  for (let first = 1; first <= count; first += WAVE) {
    const numbers = Array.from({ length: Math.min(WAVE, count - first + 1) }, (_, index) => first + index);
    visitors.push(...(await Promise.all(numbers.map((number) => visit(client, `visitor-${number}`)))));
  }
  await Promise.all(visitors.map(checkOwn));
  return visitors.map(({ inside }) => inside.id);
}

export async function destroyCrowd(client: Client, ids: readonly string[]): Promise<void> {
  for (const session_id of ids) await call(client, "sandbox_destroy", { session_id });
}

async function visit(client: Client, name: string): Promise<Visitor> {
  const inside = await openInside(client);
  await serveSite(client, { session_id: inside.id });
  const visitor = { name, inside };
  await inside.call("browser_goto", { url: `${HOME}/cookie?who=${name}`, timeout_seconds: 50 });
  await evaluate(visitor, `localStorage.setItem("who", (localStorage.getItem("who") ?? "") + ${JSON.stringify(name)})`);
  await evaluate(visitor, `document.title = ${JSON.stringify(name)}`);
  return visitor;
}

async function checkOwn(visitor: Visitor): Promise<void> {
  const { name } = visitor;
  const kept = await evaluate(visitor, "[document.title, document.cookie, localStorage.getItem('who')]");
  expect(kept).toBe(JSON.stringify([name, `who=${name}`, name]));
}

async function evaluate({ inside }: Visitor, expression: string): Promise<unknown> {
  const { structuredContent, content } = await inside.call("browser_evaluate", { expression, timeout_seconds: 50 });
  return structuredContent?.["value"] ?? content[0]?.text;
}
