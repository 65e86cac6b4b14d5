import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  classifyInboundRequest,
  LOG_LEVEL_META_KEY,
  PROTOCOL_VERSION_META_KEY,
} from "@modelcontextprotocol/server";
import type { LogLevel } from "../capability/context.ts";
import { OwlError } from "../errors/owl-error.ts";
import type { ClientCapabilities } from "./exchange.ts";
import { isObject, isRequestId, type JsonRpcNotification, type JsonRpcRequest } from "./json-rpc.ts";
import { MODERN_VERSIONS, NEWEST_MODERN_VERSION } from "./versions.ts";
import { kindOfCode } from "./wire-error.ts";
import { QUOTA_META_KEY, type Quota } from "../governance/quota.ts";

/** What a request of a revision without handshake declares about its client. */
export interface Envelope {
  readonly capabilities: ClientCapabilities;
  /** The lowest level of the log messages that the client wants; without a level it wants none. */
  readonly logLevel: LogLevel | undefined;
}

/** The headers that mirror the body, where a transport has headers. */
export interface MirrorHeaders {
  readonly version: string | undefined;
  readonly method: string | undefined;
  readonly name: string | undefined;
}

/** Throws when the envelope is invalid. The SDK checks every unusual envelope, which takes ten times as long. */
export function readEnvelope(message: JsonRpcRequest): Envelope {
  const envelope = plainEnvelope(message);
  if (envelope !== undefined) return envelope;
  const meta = message.params?.["_meta"];
  if (message.method !== "initialize" && !(isObject(meta) && PROTOCOL_VERSION_META_KEY in meta))
    throw missingEnvelope();
  assertRevision(message, {});
  const { [CLIENT_CAPABILITIES_META_KEY]: capabilities, [LOG_LEVEL_META_KEY]: level } = isObject(meta) ? meta : {};
  return { capabilities: isObject(capabilities) ? capabilities : {}, logLevel: isLogLevel(level) ? level : undefined };
}

/** An envelope whose members have the expected types; `undefined` when the SDK must check it. */
export function plainEnvelope({ params }: JsonRpcRequest): Envelope | undefined {
  const meta = params?.["_meta"];
  if (!isObject(meta) || LOG_LEVEL_META_KEY in meta || meta[PROTOCOL_VERSION_META_KEY] !== NEWEST_MODERN_VERSION)
    return undefined;
  const { [CLIENT_CAPABILITIES_META_KEY]: capabilities, [CLIENT_INFO_META_KEY]: info, progressToken = "" } = meta;
  const isPlain =
    isRequestId(progressToken) &&
    isObject(capabilities) &&
    Object.values(capabilities).every(isObject) &&
    (info === undefined || isClientInfo(info));
  return isPlain ? { capabilities, logLevel: undefined } : undefined;
}

function isClientInfo(info: unknown): boolean {
  return isObject(info) && typeof info["name"] === "string" && typeof info["version"] === "string";
}

/** Throws when the message names no supported revision without handshake, or when a header disagrees. */
export function assertRevision(message: JsonRpcRequest | JsonRpcNotification, headers: Partial<MirrorHeaders>): void {
  const { version, method } = headers;
  const outcome = classifyInboundRequest({
    httpMethod: "POST",
    body: message,
    ...(version !== undefined && { protocolVersionHeader: version }),
    ...(method !== undefined && { mcpMethodHeader: method }),
  });
  if (outcome.kind === "reject") {
    const facts = isObject(outcome.data) ? outcome.data : {};
    throw new OwlError(kindOfCode(outcome.code), outcome.message, { facts });
  }
  const revision = outcome.kind === "modern" ? outcome.classification.revision : outcome.requestedVersion;
  const isServed = MODERN_VERSIONS.some((served) => served === revision);
  if (!isServed && (outcome.kind === "modern" || "id" in message)) throw unservedRevision(revision ?? "unknown");
}

function unservedRevision(requested: string): OwlError {
  return new OwlError("unsupported_version", `Unsupported protocol version: ${requested}`, {
    facts: { supported: MODERN_VERSIONS, requested },
  });
}

function missingEnvelope(): OwlError {
  return new OwlError(
    "invalid_params",
    `Request is missing the required _meta envelope for protocol revision ${NEWEST_MODERN_VERSION} (${PROTOCOL_VERSION_META_KEY}, ${CLIENT_CAPABILITIES_META_KEY})`,
  );
}

const LOG_LEVELS: readonly LogLevel[] = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency",
];

export function isLogLevel(value: unknown): value is LogLevel {
  return LOG_LEVELS.some((level) => level === value);
}

export function isAtLeast(level: LogLevel, lowest: LogLevel): boolean {
  return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(lowest);
}

/** What the caller has left of its limits, as the `_meta` of a result. */
export function quotaMeta(quota: Quota | undefined): { readonly _meta?: Readonly<Record<string, unknown>> } {
  return quota === undefined ? {} : { _meta: { [QUOTA_META_KEY]: quota } };
}
