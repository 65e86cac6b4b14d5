import { type IncomingMessage, request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Duplex } from "node:stream";
import { describeAddress, type EngineAddress } from "./engine-address.ts";
import { EngineError, engineUnreachable } from "./engine-failure.ts";
import { z } from "zod";

const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const DEFAULT_TIMEOUT_MS = 30_000;

interface EngineCall {
  readonly method: "GET" | "POST" | "PUT" | "DELETE" | "HEAD";
  /** As in `/containers/json`, with its query. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  readonly tar?: Buffer;
  /** Statuses beside 2xx that are no error. */
  readonly accept?: readonly number[];
  /** Default: 30 s. 0: no time limit. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
}

interface HijackCall extends Pick<EngineCall, "path" | "query" | "json"> {
  readonly signal: AbortSignal;
}

interface EngineAnswer {
  readonly status: number;
  readonly json: unknown;
}

/** A client of the Docker Engine API, which Podman serves too. */
export class EngineClient {
  readonly address: EngineAddress;
  readonly #open: (options: RequestOptions) => ReturnType<typeof httpRequest>;

  constructor(address: EngineAddress) {
    this.address = address;
    const target =
      address.kind === "socket"
        ? { socketPath: address.path }
        : { host: address.host, port: address.port, ...address.tls };
    const isSecure = address.kind === "tcp" && address.tls !== undefined;
    this.#open = (options) => (isSecure ? httpsRequest : httpRequest)({ ...options, ...target, agent: false });
  }

  /** The engine's certificate must have this name. */
  get #hostHeader(): string {
    return this.address.kind === "socket" ? "engine" : this.name;
  }

  get name(): string {
    return describeAddress(this.address);
  }

  async call(call: EngineCall): Promise<EngineAnswer> {
    const { accept = [], timeoutMs = DEFAULT_TIMEOUT_MS } = call;
    const body = call.tar ?? (call.json === undefined ? undefined : Buffer.from(JSON.stringify(call.json)));
    const timeout = timeoutMs === 0 ? undefined : AbortSignal.timeout(timeoutMs);
    const signals = [call.signal, timeout].filter((signal) => signal !== undefined);
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const request = this.#open({
        method: call.method,
        path: pathOf(call),
        headers: {
          host: this.#hostHeader,
          ...(call.tar !== undefined && { "content-type": "application/x-tar" }),
          ...(call.json !== undefined && { "content-type": "application/json" }),
          "content-length": body?.byteLength ?? 0,
        },
        ...(signals.length > 0 && { signal: AbortSignal.any(signals) }),
      });
      request.once("response", resolve).once("error", reject);
      request.end(body);
    }).catch((error: unknown) => this.#fail(error, call.signal));
    const text = await readAnswer(response).catch((error: unknown) => this.#fail(error, call.signal));
    const status = response.statusCode ?? 0;
    if (status < 300 || accept.includes(status)) return { status, json: parseAnswer(text) };
    throw new EngineError(status, messageOf(text));
  }

  /** A request whose connection is upgraded to a stream to the container. */
  async hijack({ path, query, json, signal }: HijackCall): Promise<Duplex> {
    const body = json === undefined ? undefined : Buffer.from(JSON.stringify(json));
    return await new Promise<Duplex>((resolve, reject) => {
      const request = this.#open({
        method: "POST",
        path: pathOf({ path, ...(query !== undefined && { query }) }),
        headers: {
          host: this.#hostHeader,
          connection: "Upgrade",
          upgrade: "tcp",
          ...(body !== undefined && { "content-type": "application/json" }),
          "content-length": body?.byteLength ?? 0,
        },
        signal,
      });
      request.once("upgrade", (_response, socket: Duplex, head: Buffer) => {
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      request.once("response", (response: IncomingMessage) => {
        void readAnswer(response).then(
          (text) => reject(new EngineError(response.statusCode ?? 0, messageOf(text))),
          reject,
        );
      });
      request.once("error", reject);
      request.end(body);
    }).catch((error: unknown) => this.#fail(error, signal));
  }

  #fail(error: unknown, signal: AbortSignal | undefined): never {
    signal?.throwIfAborted();
    if (error instanceof EngineError) throw error;
    throw engineUnreachable(this.address, error);
  }
}

function pathOf({ path, query }: Pick<EngineCall, "path" | "query">): string {
  return query === undefined ? path : `${path}?${new URLSearchParams(query).toString()}`;
}

async function readAnswer(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response) {
    const part = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    size += part.byteLength;
    if (size > MAX_ANSWER_BYTES) throw new Error("the answer of the engine is too long");
    chunks.push(part);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parseAnswer(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The answer to `_ping` and some empty answers are not JSON.
    return text;
  }
}

function messageOf(text: string): string {
  const parsed = parseAnswer(text);
  const message = typeof parsed === "object" && parsed !== null && "message" in parsed ? parsed.message : text;
  return String(message).trim().slice(0, 1000);
}

export const createdSchema = z.object({ Id: z.string().regex(/^[0-9a-f]{12,128}$/) });

export const stateSchema = z.object({
  State: z.object({
    Running: z.boolean(),
    ExitCode: z.number().int(),
    OOMKilled: z.boolean(),
    Pid: z.number().int().default(0),
  }),
});

export const waitSchema = z.object({ StatusCode: z.number().int() });

const labels = z
  .record(z.string(), z.string())
  .nullish()
  .transform((found) => found ?? {});

export const labelledSchema = z.object({ Id: z.string(), Config: z.object({ Labels: labels }) });

const names = z
  .array(z.string())
  .nullish()
  .transform((found) => found ?? []);

export const containersSchema = z.array(
  z.object({ Id: z.string(), Names: names, Labels: labels, State: z.string().default("") }),
);

export const volumesSchema = z.object({
  Volumes: z
    .array(z.object({ Name: z.string(), Labels: labels }))
    .nullish()
    .transform((found) => found ?? []),
});

export const volumeSchema = z.object({ Mountpoint: z.string().default("") });

export const statsSchema = z.object({
  memory_stats: z.object({ usage: z.number().default(0) }).default({ usage: 0 }),
  pids_stats: z.object({ current: z.number().default(0) }).default({ current: 0 }),
  cpu_stats: z.object({ cpu_usage: z.object({ total_usage: z.number().default(0) }) }),
});
