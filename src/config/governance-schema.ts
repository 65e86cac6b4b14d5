import { z } from "zod";
import { fieldFacts, seconds } from "./field.ts";
import { isTimeZone } from "./value-rules.ts";

const MAX_PATTERN_CHARS = 256;
const MAX_EXPRESSION_CHARS = 4000;

const pattern = z.string().min(1).max(MAX_PATTERN_CHARS);
const patterns = z.array(pattern).max(1000);
/** 0: no limit. */
const limit = z.int().min(0).max(1_000_000_000);
const money = z.number().min(0).max(1_000_000_000);
const reason = z.string().max(500);

/**
 * Who approves the call. `operator`: an operator of the server. `client`: the user of the client, which is not a
 * security boundary.
 */
const confirm = z.enum(["operator", "client"]);

const denied = z.union([pattern, z.strictObject({ match: pattern, reason })]);

/** The rules for one principal, group or label. They can only tighten the rules of the layers above. */
const layer = z.strictObject({
  visible: patterns.optional(),
  hidden: patterns.optional(),
  allow: patterns.optional(),
  deny: z.array(denied).max(1000).optional(),
  confirm: z.record(pattern, confirm).optional(),
  callsPerMinute: limit.optional(),
  callsPerDay: limit.optional(),
  concurrency: limit.optional(),
  monthlyBudget: money.optional(),
  maxCostPerCall: money.optional(),
});

const price = z.union([
  money,
  z.strictObject({ fixed: money.optional(), perSecond: money.optional(), perEgressMb: money.optional() }),
]);

const tool = z.strictObject({
  cost: price.optional(),
  maxCost: money.optional(),
  confirm: confirm.optional(),
  callsPerMinute: limit.optional(),
  callsPerDay: limit.optional(),
  concurrency: limit.optional(),
});

const rule = z.strictObject({
  id: z
    .string()
    .regex(/^[\w.-]{1,64}$/, "must be 1 to 64 letters, digits, _, - or .")
    .describe("Named in every refusal and in the ledger."),
  when: z.string().min(1).max(MAX_EXPRESSION_CHARS),
  effect: z.enum(["allow", "deny", "confirm"]),
  confirm: confirm.optional(),
  reason: reason.optional(),
});

const defaults = z
  .strictObject({
    visible: patterns
      .default(["*"])
      .describe("What callers may know of: globs over tools, URIs, prompt:NAME, scope:NAME."),
    hidden: patterns.default([]).describe("What nobody sees and everybody is refused."),
    allow: patterns.default(["*"]).describe("What callers may use of what they see."),
    deny: z.array(denied).max(1000).default([]).describe("What is refused, as a glob, or as match and reason."),
    confirm: z.record(pattern, confirm).default({}).describe("Globs of what needs a yes first: operator or client."),
    callsPerMinute: limit.default(600).describe("Calls of one principal in any 60 seconds. 0: no limit."),
    callsPerDay: limit.default(50_000).describe("Calls of one principal in a calendar day. 0: no limit."),
    concurrency: limit.default(64).describe("Calls of one principal that run at the same time. 0: no limit."),
    monthlyBudget: money.default(0).describe("What one principal may spend in a calendar month. 0: no limit."),
    maxCostPerCall: money.default(0).describe("The most that one call may cost. 0: no limit."),
  })
  .prefault({})
  .describe("In force for every principal.");

const shape = {
  timeZone: z
    .string()
    .refine(isTimeZone, "must be a time zone such as UTC or Europe/Berlin")
    .default("UTC")
    .describe("Where days and months begin."),
  groupsClaim: z.string().min(1).max(128).default("groups").describe("The claim of the token that names groups."),
  defaults,
  clients: z.record(pattern, layer).default({}).describe("By principal or glob: the same keys as defaults."),
  groups: z.record(pattern, layer).default({}).describe("By group or glob: the same keys, for each of its members."),
  labels: z
    .record(pattern, layer)
    .default({})
    .describe("By X-MCP-Client-ID or glob: the same keys, counted for each label below its principal."),
  tools: z
    .record(pattern, tool)
    .default({})
    .describe(
      "By glob: cost, maxCost, confirm, callsPerMinute, callsPerDay and concurrency of each tool that matches.",
    ),
  rules: z
    .array(rule)
    .max(1000)
    .default([])
    .describe(
      "In order, the first whose CEL expression holds decides: id, when, effect (allow, deny, confirm), reason.",
    ),
};

/** The content of a policy file: the rules, without settings of the server. */
export const policySchema = z.strictObject(shape);

export type PolicyConfig = z.output<typeof policySchema>;
export type LayerConfig = z.output<typeof layer>;
export type ToolConfig = z.output<typeof tool>;
export type RuleConfig = z.output<typeof rule>;

export const governance = z
  .strictObject({
    policyFile: z
      .string()
      .default("")
      .describe(
        "YAML file with the keys from timeZone on; a key there replaces the one here. Read again when it changes.",
      )
      .register(fieldFacts, { path: "file" }),
    failOpen: z
      .boolean()
      .default(false)
      .describe(
        "Lets calls through when limits cannot be counted or the ledger cannot be written. false: refuses them.",
      ),
    approvalTimeoutSeconds: seconds().default(300).describe("Time for a yes; without one the call is refused."),
    ...shape,
  })
  .prefault({})
  .describe("Who may do what, how often and at what cost.");

export const limits = z
  .strictObject({
    leaseSeconds: seconds()
      .min(1)
      .max(3600)
      .default(15)
      .describe(
        "With store.url: a server that sends no heartbeat for so long counts as dead, and its reservations are released.",
      ),
  })
  .prefault({})
  .describe("What servers that count together share.");
