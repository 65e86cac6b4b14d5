import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = join(import.meta.dirname, "recording");
const IS_REWRITING = process.env["OWLCLAW_UPDATE_WIRE"] === "1";
const MAX_TEXT = 300;
const MAX_DEPTH = 30;

/** What a request was answered on one connection. */
export interface Heard {
  /** `http 2025-11-25`. Over HTTP the status and the type of the body follow: `http 2025-11-25 200 json`. */
  readonly on: string;
  readonly messages: readonly unknown[];
}

export interface Exchange {
  readonly name: string;
  readonly sent: unknown;
  readonly heard: readonly Heard[];
}

export interface Difference {
  readonly name: string;
  readonly recorded: unknown;
  readonly answered: unknown;
}

/** What differs from the committed file, which is written anew where that is asked for. Connections with equal answers share one entry. */
export function differences(file: string, exchanges: readonly Exchange[]): readonly Difference[] {
  const path = join(FOLDER, file);
  const known = new Map<string, string>();
  const now = `[\n${withOwnNames(exchanges)
    .map((exchange) => toText(exchange, known))
    .join(",\n")}\n]\n`;
  const answered = entriesOf(now);
  if (IS_REWRITING) writeFileSync(path, now);
  const recorded = entriesOf(readFileSync(path, "utf8"));
  const names = new Set([...recorded.keys(), ...answered.keys()]);
  return [...names]
    .map((name) => ({ name, recorded: recorded.get(name), answered: answered.get(name) }))
    .filter((entry) => JSON.stringify(entry.recorded) !== JSON.stringify(entry.answered));
}

function entriesOf(text: string): Map<string, unknown> {
  const entries: { readonly name: string }[] = JSON.parse(text);
  return new Map(entries.map((entry) => [entry.name, entry]));
}

function withOwnNames(exchanges: readonly Exchange[]): readonly Exchange[] {
  const used = new Map<string, number>();
  return exchanges.map((exchange) => {
    const times = (used.get(exchange.name) ?? 0) + 1;
    used.set(exchange.name, times);
    return times === 1 ? exchange : { ...exchange, name: `${exchange.name} (${times})` };
  });
}

/** A long message stands in the file once; the next equal one names the exchange that has it. */
function toText({ name, sent, heard }: Exchange, known: Map<string, string>): string {
  const groups = new Map<string, string[]>();
  for (const { on, messages } of heard) {
    const key = messages.map((message) => `\n        ${once(line(normalized(message)), name, known)}`).join(",");
    groups.set(key, [...(groups.get(key) ?? []), on]);
  }
  const answers = [...groups].map(([messages, on]) => {
    const list = messages === "" ? "[]" : `[${messages}\n      ]`;
    return `\n    { "on": ${line(merged(on))},\n      "messages": ${list} }`;
  });
  return `  { "name": ${line(name)},\n    "sent": ${line(sent)},\n    "answers": [${answers.join(",")}\n  ] }`;
}

const LONG_MESSAGE = 1500;

function once(text: string, name: string, known: Map<string, string>): string {
  if (text.length < LONG_MESSAGE) return text;
  const first = known.get(text);
  if (first === undefined) known.set(text, name);
  return first === undefined || first === name ? text : JSON.stringify({ "the same message as in": first });
}

/** `http 200 json, stdio: plain, 2024-11-05` for four connections whose answers are equal. */
function merged(on: readonly string[]): readonly string[] {
  const revisions = new Map<string, string[]>();
  for (const name of on) {
    const [transport = "", revision = "", ...status] = name.split(" ");
    const key = [transport, ...status].join(" ");
    revisions.set(key, [...(revisions.get(key) ?? []), revision]);
  }
  const transports = new Map<string, string[]>();
  for (const [transport, names] of revisions) {
    const key = names.join(", ");
    transports.set(key, [...(transports.get(key) ?? []), transport]);
  }
  return [...transports].map(([names, all]) => `${all.join(", ")}: ${names}`);
}

function line(value: unknown): string {
  return JSON.stringify(shortened(value, 0)) ?? "null";
}

/** What may differ between two equal answers: what is made at random, and what time gives back of a quota. */
const RANDOM = new Set([
  "trace_id",
  "requestState",
  "taskId",
  "createdAt",
  "lastUpdatedAt",
  "remaining",
  "reset_seconds",
  "task_id",
  "lastModified",
]);

function normalized(value: unknown): unknown {
  // A batch is a list of messages.
  if (Array.isArray(value)) return value.map(normalized);
  return isObject(value) ? composed(value, ["params", "result", "error"]) : deep(value);
}

/** The engine composes these objects of many parts, so that the order of their members means nothing. All others are compared as sent. */
function composed(value: Record<string, unknown>, parts: readonly string[]): Record<string, unknown> {
  const members = Object.entries(value).map(([key, child]): [string, unknown] => {
    if (RANDOM.has(key)) return [key, `<${typeof child}>`];
    if (isServerInfo(key, child)) return [key, { ...child, version: "<version>" }];
    if (key === "_meta" && isObject(child)) return [key, composed(child, [])];
    return [key, parts.includes(key) && isObject(child) ? composed(child, []) : deep(child)];
  });
  return Object.fromEntries(members.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function isServerInfo(key: string, value: unknown): value is Record<string, unknown> {
  return (key === "serverInfo" || key === "io.modelcontextprotocol/serverInfo") && isObject(value);
}

function deep(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(deep);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [key, RANDOM.has(key) ? `<${typeof child}>` : deep(child)]),
  );
}

/** Long texts and deep values are recorded by their beginning, and texts by their digest too. */
function shortened(value: unknown, depth: number): unknown {
  if (typeof value === "string") return shortText(value);
  if (Array.isArray(value)) return depth > MAX_DEPTH ? "<deeper>" : value.map((child) => shortened(child, depth + 1));
  if (!isObject(value)) return value;
  if (depth > MAX_DEPTH) return "<deeper>";
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, shortened(child, depth + 1)]));
}

function shortText(text: string): string {
  if (text.length <= MAX_TEXT) return text;
  const digest = createHash("sha256").update(text).digest("hex").slice(0, 16);
  return `${text.slice(0, MAX_TEXT / 4)}… <${text.length} characters, sha256 ${digest}>`;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
