import * as z from "zod";
import { type ServerCapabilities, specTypeSchemas, type StandardSchemaV1 } from "@modelcontextprotocol/server";
import {
  RESOURCES_DIRECTORY_READ_METHOD,
  SKILLS_EXTENSION_ID,
  SKILLS_GET_METHOD,
  SKILLS_LIST_METHOD,
} from "@modelcontextprotocol/server/ext/skills";
import { OwlError } from "../errors/owl-error.ts";
import type { Exchange } from "./exchange.ts";
import { isObject, type JsonRpcRequest } from "./json-rpc.ts";
import { callTool } from "./methods/call-tool.ts";
import { complete } from "./methods/complete.ts";
import { listen } from "./subscriptions.ts";
import { listTools, constraintsOf } from "./methods/list-tools.ts";
import { getPrompt, listPrompts } from "./methods/prompts.ts";
import { listResources, listTemplates, readResource } from "./methods/resources.ts";
import { getSkill, listSkills, readDirectory } from "./methods/skills.ts";
import { cancelTask, getTask, updateTask } from "./methods/tasks.ts";
import type { ServedRequest } from "./peer.ts";
import { TASKS_EXTENSION } from "./tasks.ts";
import { isModern, LEGACY_VERSIONS, MODERN_VERSIONS, NEWEST_LEGACY_VERSION, SUPPORTED_VERSIONS } from "./versions.ts";
import type { Tool } from "../capability/registry.ts";
import type { Terms } from "../governance/policy/terms.ts";
import type { Mcp } from "./mcp.ts";

export type Result = Record<string, unknown>;

/** A request with valid parameters, as passed to the function that serves it. */
export interface Serving {
  readonly served: ServedRequest;
  readonly message: JsonRpcRequest;
  readonly exchange: Exchange;
}

export interface Method {
  readonly revisions: "all" | "with handshake" | "without handshake";
  readonly isOfSkills: boolean;
  /** Whether its results say how long they may be cached. */
  readonly isCacheable: boolean;
  /**
   * Reads the request and returns the function that serves it. @throws OwlError for parameters that the schema rejects.
   */
  readonly read: (message: JsonRpcRequest) => (serving: Serving) => Result | Promise<Result>;
}

export interface MethodContext {
  readonly version: string;
  readonly servesSkills: boolean;
}

/** The method of this name, if the revision has it. */
export function methodOf(name: string, { version, servesSkills }: MethodContext): Method | undefined {
  const method = METHODS.get(name);
  if (method === undefined || (method.isOfSkills && !servesSkills)) return undefined;
  const revisions = isModern(version) ? "without handshake" : "with handshake";
  return method.revisions === "all" || method.revisions === revisions ? method : undefined;
}

const CAPABILITIES: ServerCapabilities = {
  tools: { listChanged: true },
  resources: { subscribe: true, listChanged: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
};

interface MethodOptions<T> {
  readonly schema: StandardSchemaV1<unknown, T>;
  readonly revisions?: Method["revisions"];
  readonly isOfSkills?: boolean;
  readonly isCacheable?: boolean;
  readonly run: (request: T, serving: Serving) => Result | Promise<Result>;
}

function define<T>({
  schema,
  run,
  revisions = "all",
  isOfSkills = false,
  isCacheable = false,
}: MethodOptions<T>): Method {
  return {
    revisions,
    isOfSkills,
    isCacheable,
    read: (message) => {
      const request = parsed(schema, message);
      return (serving) => run(request, serving);
    },
  };
}

function parsed<T>(schema: StandardSchemaV1<unknown, T>, message: JsonRpcRequest): T {
  const outcome = schema["~standard"].validate(message);
  if (outcome instanceof Promise) throw new TypeError("the schema of a request answers at once");
  if (outcome.issues === undefined) return outcome.value;
  const issues = outcome.issues.map(({ path = [], message: problem }) => ({
    path: path.map((part) => String(typeof part === "object" ? part.key : part)).join("."),
    message: problem,
  }));
  const detail = issues.map(({ path, message: problem }) => `${path}: ${problem}`).join("; ");
  throw new OwlError("invalid_params", `invalid parameters for ${message.method}: ${detail}`, { facts: { issues } });
}

const ANY_REQUEST = z.looseObject({});
const TASK_REQUEST = z.object({ params: z.looseObject({ taskId: z.string() }) });
const LIST_REQUEST = z.object({ params: z.looseObject({ cursor: z.string().optional() }).optional() });
const URI_REQUEST = z.object({ params: z.looseObject({ uri: z.string() }) });
const DIRECTORY_REQUEST = z.object({ params: z.looseObject({ uri: z.string(), cursor: z.string().optional() }) });

const BASIC_METHODS: readonly (readonly [string, Method])[] = [
  ["ping", define({ schema: specTypeSchemas.PingRequest, revisions: "with handshake", run: () => ({}) })],
  [
    "initialize",
    define({
      schema: specTypeSchemas.InitializeRequest,
      revisions: "with handshake",
      run: ({ params }, { served: { mcp, peer }, message }) => {
        const asked = params.protocolVersion;
        const declared = message.params?.["capabilities"];
        const protocolVersion = LEGACY_VERSIONS.find((version) => version === asked) ?? NEWEST_LEGACY_VERSION;
        peer.capabilities = isObject(declared) ? declared : {};
        peer.negotiatedVersion = protocolVersion;
        return { protocolVersion, capabilities: CAPABILITIES, serverInfo: mcp.serverInfo };
      },
    }),
  ],
  [
    "server/discover",
    define({
      schema: ANY_REQUEST,
      revisions: "without handshake",
      isCacheable: true,
      run: (_request, { served: { mcp } }) => {
        const skills = mcp.servesSkills ? { [SKILLS_EXTENSION_ID]: { directoryRead: true } } : {};
        const extensions = { [TASKS_EXTENSION]: {}, ...skills };
        return { supportedVersions: MODERN_VERSIONS, capabilities: { ...CAPABILITIES, extensions } };
      },
    }),
  ],
  [
    "logging/setLevel",
    define({
      schema: specTypeSchemas.SetLevelRequest,
      revisions: "with handshake",
      run: ({ params }, { served: { peer } }) => {
        peer.logLevel = params.level;
        return {};
      },
    }),
  ],
  [
    "mcp.capabilities",
    define({
      schema: ANY_REQUEST,
      run: (_request, { served, exchange }) => describeCapabilities(served.mcp, exchange),
    }),
  ],
];

const CAPABILITY_METHODS: readonly (readonly [string, Method])[] = [
  [
    "tools/list",
    define({
      schema: specTypeSchemas.ListToolsRequest,
      isCacheable: true,
      run: ({ params }, { served, exchange }) => listTools(served.mcp, params?.cursor, exchange),
    }),
  ],
  [
    "tools/call",
    define({
      schema: specTypeSchemas.CallToolRequest,
      run: ({ params: { name } }, { served, message, exchange }) => {
        // As the client sent them: the schema's copy lacks members with special names.
        const args = message.params?.["arguments"];
        return callTool(served.mcp, { name, arguments: isObject(args) ? args : undefined }, exchange);
      },
    }),
  ],
  [
    "prompts/list",
    define({
      schema: specTypeSchemas.ListPromptsRequest,
      isCacheable: true,
      run: ({ params }, { served, exchange }) => listPrompts(served.mcp, params?.cursor, exchange),
    }),
  ],
  [
    "prompts/get",
    define({
      schema: specTypeSchemas.GetPromptRequest,
      run: ({ params }, { served, exchange }) => getPrompt(served.mcp, params, exchange),
    }),
  ],
  [
    "completion/complete",
    define({
      schema: specTypeSchemas.CompleteRequest,
      run: ({ params }, { served, exchange }) => complete(served.mcp, params, exchange),
    }),
  ],
  ["tasks/get", taskMethod(getTask)],
  ["tasks/update", taskMethod(updateTask)],
  ["tasks/cancel", taskMethod(cancelTask)],
];

function taskMethod(run: typeof getTask): Method {
  return define({
    schema: TASK_REQUEST,
    run: ({ params }, { served, exchange }) => run(served.mcp, params, exchange),
  });
}

const RESOURCE_METHODS: readonly (readonly [string, Method])[] = [
  [
    "resources/list",
    define({
      schema: specTypeSchemas.ListResourcesRequest,
      isCacheable: true,
      run: ({ params = {} }, { served, exchange }) => listResources(served.mcp, params, exchange),
    }),
  ],
  [
    "resources/templates/list",
    define({
      schema: specTypeSchemas.ListResourceTemplatesRequest,
      isCacheable: true,
      run: ({ params }, { served, exchange }) => listTemplates(served.mcp, params?.cursor, exchange),
    }),
  ],
  [
    "resources/read",
    define({
      schema: specTypeSchemas.ReadResourceRequest,
      isCacheable: true,
      run: ({ params }, { served, exchange }) => readResource(served.mcp, params, exchange),
    }),
  ],
  [
    "resources/subscribe",
    define({
      schema: specTypeSchemas.SubscribeRequest,
      revisions: "with handshake",
      run: async ({ params: { uri } }, { served: { mcp, peer }, exchange }) => {
        await mcp.pipeline.subscribe(uri, exchange);
        peer.watched.set(uri, exchange.caller);
        return {};
      },
    }),
  ],
  [
    "resources/unsubscribe",
    define({
      schema: specTypeSchemas.UnsubscribeRequest,
      revisions: "with handshake",
      run: ({ params: { uri } }, { served: { peer } }) => {
        peer.watched.delete(uri);
        return {};
      },
    }),
  ],
  [
    "subscriptions/listen",
    define({
      schema: ANY_REQUEST,
      revisions: "without handshake",
      run: (_request, { served, message }) => listen(served, message),
    }),
  ],
];

/** The skills extension. */
const SKILL_METHODS: readonly (readonly [string, Method])[] = [
  [
    SKILLS_LIST_METHOD,
    define({
      schema: LIST_REQUEST,
      revisions: "without handshake",
      isOfSkills: true,
      run: ({ params }, { served, exchange }) => listSkills(served.mcp, params?.cursor, exchange),
    }),
  ],
  [
    SKILLS_GET_METHOD,
    define({
      schema: URI_REQUEST,
      revisions: "without handshake",
      isOfSkills: true,
      run: ({ params }, { served, exchange }) => getSkill(served.mcp, params.uri, exchange),
    }),
  ],
  [
    RESOURCES_DIRECTORY_READ_METHOD,
    define({
      schema: DIRECTORY_REQUEST,
      revisions: "without handshake",
      isOfSkills: true,
      run: ({ params }, { served, exchange }) => readDirectory(served.mcp, params, exchange),
    }),
  ],
];

const METHODS: ReadonlyMap<string, Method> = new Map([
  ...BASIC_METHODS,
  ...CAPABILITY_METHODS,
  ...RESOURCE_METHODS,
  ...SKILL_METHODS,
]);

/** `mcp.capabilities`: every tool that the caller may see, with its version and whether it may be used. */
export async function describeCapabilities(mcp: Mcp, exchange: Exchange): Promise<Record<string, unknown>> {
  const { caller } = exchange;
  const tools = mcp.pipeline.view.known(caller);
  await mcp.pipeline.recordList("mcp.capabilities", exchange, tools.length);
  return {
    server: mcp.serverInfo,
    protocolVersion: caller.protocolVersion,
    supportedVersions: SUPPORTED_VERSIONS,
    tools: tools.map((tool) => describeTool(tool, mcp.pipeline.view.termsOf(tool, caller))),
  };
}

function describeTool({ name, version, title, description, scope }: Tool, terms: Terms | undefined) {
  const denied = terms?.denied;
  const constraints = terms === undefined ? {} : constraintsOf(terms);
  return {
    name,
    version,
    ...(title !== undefined && { title }),
    description,
    permissions: {
      allow: denied === undefined,
      scope,
      ...(denied !== undefined && { reason: denied.reason ?? `the policy refuses it (${denied.rule})` }),
    },
    ...(Object.keys(constraints).length > 0 && { constraints }),
  };
}
