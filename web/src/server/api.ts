import { signal } from "@preact/signals";
import { fromAnswer } from "./answer-text.ts";
import { isAttended } from "./last-input.ts";
import type { ErrorAnswer, SessionAnswer } from "../../../src/operator/contract.ts";

export const BASE = "/dashboard";
const API = `${BASE}/api/`;

/** `unknown` until the server has answered; `undefined` without a session. */
export const session = signal<SessionAnswer | undefined | "unknown">("unknown");

/** An error response of the server. */
export class ApiFailure extends Error {
  override readonly name = "ApiFailure";
  readonly status: number;
  readonly kind: string;
  readonly hint: string | undefined;

  constructor(status: number, error: ErrorAnswer["error"]) {
    super(error.message);
    this.status = status;
    this.kind = error.kind;
    this.hint = error.hint;
  }
}

export function apiUrl(path: string, query: Query = {}): string {
  const text = queryText(query);
  return `${API}${path}${text === "" ? "" : `?${text}`}`;
}

export type Query = Readonly<Record<string, string | number | undefined>>;

export function queryText(query: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== "") params.set(name, `${value}`);
  return params.toString();
}

export async function get<T>(path: string, query: Query = {}, abort?: AbortSignal): Promise<T> {
  return await answerOf<T>(await reach(apiUrl(path, query), abort === undefined ? {} : { signal: abort }));
}

export async function post<T>(path: string, body: unknown = {}): Promise<T> {
  const headers = { ...csrfHeader(), "content-type": "application/json" };
  return await answerOf<T>(await reach(apiUrl(path), { method: "POST", headers, body: JSON.stringify(body) }));
}

export async function put(path: string, query: Query, body: Blob): Promise<void> {
  await answerOf<unknown>(await reach(apiUrl(path, query), { method: "PUT", headers: csrfHeader(), body }));
}

function csrfHeader(): Record<string, string> {
  const current = session.peek();
  return typeof current === "object" ? { "x-owlclaw-csrf": current.csrf } : {};
}

/** Marks requests that are sent while the user is inactive, so that they do not extend the session. */
async function reach(
  url: string,
  init: Omit<RequestInit, "headers"> & { readonly headers?: Record<string, string> },
): Promise<Response> {
  try {
    const headers = { ...init.headers, ...(isAttended() ? {} : { "x-owlclaw-idle": "1" }) };
    return await fetch(url, { ...init, headers, credentials: "same-origin" });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    const hint = "Is it running, and is this machine still connected to it?";
    throw new ApiFailure(0, { kind: "unreachable", message: "The server does not answer.", hint });
  }
}

async function answerOf<T>(response: Response): Promise<T> {
  const text = await response.text();
  if (!response.ok) throw failureOf(response.status, text);
  return fromAnswer<T>(text === "" ? "null" : text);
}

function failureOf(status: number, text: string): ApiFailure {
  if (status === 401) session.value = undefined;
  return new ApiFailure(status, errorIn(text) ?? { kind: "unexpected", message: `The server answered ${status}.` });
}

function errorIn(text: string): ErrorAnswer["error"] | undefined {
  try {
    const parsed: unknown = JSON.parse(text);
    return isErrorAnswer(parsed) ? parsed.error : undefined;
  } catch {
    // Not JSON, for example the error page of a proxy. Only its status is known.
    return undefined;
  }
}

function isErrorAnswer(value: unknown): value is ErrorAnswer {
  if (typeof value !== "object" || value === null || !("error" in value)) return false;
  const { error } = value;
  return typeof error === "object" && error !== null && "kind" in error && "message" in error;
}
