import {
  Client as ClientV2,
  type ClientOptions as OptionsV2,
  SSEClientTransport as SseV2,
  StreamableHTTPClientTransport as HttpV2,
} from "@modelcontextprotocol/client";
import { StdioClientTransport as StdioV2 } from "@modelcontextprotocol/client/stdio";
import { Client as ClientV1 } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport as SseV1 } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport as StdioV1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HttpV1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CallToolResultSchema,
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { Client as ClientOld } from "../clients/node_modules/@modelcontextprotocol/sdk/dist/client/index.js";
import { StdioClientTransport as StdioOld } from "../clients/node_modules/@modelcontextprotocol/sdk/dist/client/stdio.js";
import * as oldTypes from "../clients/node_modules/@modelcontextprotocol/sdk/dist/types.js";
import { type ServerOptions, stdioCommand } from "./harness.ts";
import { CLIENT_INFO, type Unchecked } from "./wire-messages.ts";

export type Loose = Record<string, Unchecked>;

export interface Progress {
  readonly progress: number;
  readonly total?: number | undefined;
  readonly message?: string | undefined;
}

export interface CallOptions {
  readonly onprogress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
}

/** What the tests do with a client, whichever library it is. */
export interface TestClient {
  listTools(params?: Loose): Promise<Loose>;
  callTool(params: Loose, options?: CallOptions): Promise<Loose>;
  listResources(params?: Loose): Promise<Loose>;
  listResourceTemplates(params?: Loose): Promise<Loose>;
  readResource(params: Loose): Promise<Loose>;
  listPrompts(params?: Loose): Promise<Loose>;
  getPrompt(params: Loose): Promise<Loose>;
  complete(params: Loose): Promise<Loose>;
  ping(): Promise<Loose>;
  setLoggingLevel(level: string): Promise<Loose>;
  subscribeResource(params: Loose): Promise<Loose>;
  getServerCapabilities(): Loose | undefined;
  getServerVersion(): Loose | undefined;
  close(): Promise<void>;
  /** Notifications that came in, oldest first. */
  readonly notifications: { readonly method: string; readonly params: Loose }[];
}

export interface Door {
  readonly client: "v2" | "v1" | "1.0";
  readonly transport: "stdio" | "http" | "sse";
  /** The revision that the client and the server settle on. */
  readonly version: string;
  /** How the v2 client finds the revision. */
  readonly mode?: OptionsV2["versionNegotiation"];
}

/** Answers that the person and the model at the client give. */
const ELICITED = { action: "accept" as const, content: { name: "Ada" } };
const SAMPLED = {
  role: "assistant" as const,
  model: "test-model",
  content: { type: "text" as const, text: "forty-two" },
};

const NOTIFICATIONS = [
  "notifications/message",
  "notifications/tools/list_changed",
  "notifications/resources/list_changed",
  "notifications/prompts/list_changed",
  "notifications/resources/updated",
] as const;

export async function connect(door: Door, url: string, options: ServerOptions = {}): Promise<TestClient> {
  if (door.client === "v2") return connectV2(door, url, options);
  return door.client === "v1" ? connectV1(door, url, options) : connectOld();
}

async function connectV2({ transport, version, mode }: Door, url: string, options: ServerOptions): Promise<TestClient> {
  const client = new ClientV2(CLIENT_INFO, {
    capabilities: { elicitation: {}, sampling: {} },
    ...(mode === undefined ? { supportedProtocolVersions: [version] } : { versionNegotiation: mode }),
  });
  const notifications: TestClient["notifications"] = [];
  for (const method of NOTIFICATIONS) {
    client.setNotificationHandler(method, (message) => {
      notifications.push({ method: message.method, params: message.params ?? {} });
    });
  }
  client.setRequestHandler("elicitation/create", () => ELICITED);
  client.setRequestHandler("sampling/createMessage", () => SAMPLED);
  const { command, args, env } = stdioCommand(options);
  await client.connect(
    transport === "stdio"
      ? new StdioV2({ command, args, env, stderr: "ignore" })
      : transport === "http"
        ? new HttpV2(new URL(url))
        : new SseV2(new URL(`${url}/sse`)),
  );
  return Object.assign(client as unknown as TestClient, { notifications });
}

async function connectV1({ transport }: Door, url: string, options: ServerOptions): Promise<TestClient> {
  const client = new ClientV1(CLIENT_INFO, { capabilities: { elicitation: {}, sampling: {} } });
  const notifications: TestClient["notifications"] = [];
  for (const schema of [
    LoggingMessageNotificationSchema,
    ToolListChangedNotificationSchema,
    ResourceListChangedNotificationSchema,
    PromptListChangedNotificationSchema,
    ResourceUpdatedNotificationSchema,
  ]) {
    client.setNotificationHandler(schema, (message: { method: string; params?: Loose | undefined }) => {
      notifications.push({ method: message.method, params: message.params ?? {} });
    });
  }
  client.setRequestHandler(ElicitRequestSchema, () => ELICITED);
  client.setRequestHandler(CreateMessageRequestSchema, () => SAMPLED);
  const { command, args, env } = stdioCommand(options);
  await client.connect(
    transport === "stdio"
      ? new StdioV1({ command, args, env, stderr: "ignore" })
      : transport === "http"
        ? new HttpV1(new URL(url))
        : new SseV1(new URL(`${url}/sse`)),
  );
  const callTool = client.callTool.bind(client);
  return Object.assign(client as unknown as TestClient, {
    notifications,
    callTool: (params: Loose, options: CallOptions = {}) =>
      callTool(params as Parameters<typeof callTool>[0], CallToolResultSchema, options),
  });
}

async function connectOld(): Promise<TestClient> {
  const client: Unchecked = new ClientOld(CLIENT_INFO, { capabilities: { sampling: {} } });
  const notifications: TestClient["notifications"] = [];
  for (const schema of [
    oldTypes.LoggingMessageNotificationSchema,
    oldTypes.ToolListChangedNotificationSchema,
    oldTypes.ResourceListChangedNotificationSchema,
    oldTypes.PromptListChangedNotificationSchema,
    oldTypes.ResourceUpdatedNotificationSchema,
  ]) {
    client.setNotificationHandler(schema, (message: { method: string; params?: Loose }) => {
      notifications.push({ method: message.method, params: message.params ?? {} });
    });
  }
  client.setRequestHandler(oldTypes.CreateMessageRequestSchema, () => SAMPLED);
  const { command, args, env } = stdioCommand();
  await client.connect(new StdioOld({ command, args, env, stderr: "ignore" }));
  const callTool = client.callTool.bind(client);
  return Object.assign(client, {
    notifications,
    callTool: (params: Loose, options: CallOptions = {}) => callTool(params, oldTypes.CallToolResultSchema, options),
  }) as TestClient;
}
