import type { Config } from "../../config/schema.ts";
import { type DoctorCheck, type DoctorProbe, failed, ok, warning } from "./check.ts";
import { AskFailed, ChildConnection, type Called } from "./child-connection.ts";
import { inflateSync } from "node:zlib";

const NAMED = { category: "whole way", name: "a call over stdio" } as const;
const BROWSER = { category: "whole way", name: "browser" } as const;

interface TestStart {
  readonly tool: string;
  /** Names of the tool in other dialects. The server may list any of them. */
  readonly dialects: readonly string[];
  readonly args: Readonly<Record<string, unknown>>;
  /** Text that the result must contain. */
  readonly answer?: string;
}

const CREATE: TestStart = { tool: "sandbox_create", dialects: [], args: {} };

/**
 * Harmless calls. The first one that the server lists is used: the list starts with the calls that exercise most of the
 * server.
 */
const TRIALS: readonly TestStart[] = [
  { tool: "code_run", dialects: ["execute_code", "code.exec"], args: { code: "print(6*7)" }, answer: "42" },
  { tool: "shell_exec", dialects: ["execute_command", "shell.exec"], args: { command: "expr 6 '*' 7" }, answer: "42" },
  { tool: "file_list", dialects: ["file.list"], args: {} },
  CREATE,
];

/** Starts this program as a client does, and calls tools. `command` is the command line that starts it over stdio. */
export function endToEndProbe(config: Config, command: readonly string[]): DoctorProbe {
  return {
    async look() {
      const line = new ChildConnection(command);
      const checks: DoctorCheck[] = [];
      try {
        const startMs = performance.now();
        const listed = await listTools(line);
        const trials = config.sandbox.enabled ? trialsFor(config.sandbox, listed) : [];
        checks.push(await unlessRefused(NAMED, () => callTools(line, { trials, startMs })));
        const hasBrowser = config.sandbox.enabled && isAnyListed(listed, ["browser_goto", "browser.navigate"]);
        if (hasBrowser && checks.every(({ status }) => status === "ok"))
          checks.push(await unlessRefused(BROWSER, () => browserCheck(line)));
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        checks.push(failed(NAMED, `${reason}${line.lastWords()}`, "repair what failed above, then run doctor again"));
      } finally {
        await line.close();
      }
      return checks;
    },
  };
}

async function listTools(line: ChildConnection): Promise<ReadonlySet<string>> {
  const clientInfo = { name: "owlclaw-doctor", version: "1" };
  await line.ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  line.tell("notifications/initialized");
  return new Set(await line.listTools());
}

async function callTools(
  line: ChildConnection,
  { trials, startMs }: { readonly trials: readonly TestStart[]; readonly startMs: number },
): Promise<DoctorCheck> {
  for (const { tool, args, answer = "" } of trials) {
    const called = await line.call(tool, args);
    const text = JSON.stringify(called);
    if (called.isError === true || !text.includes(answer))
      return failed(
        NAMED,
        `${tool} did not ${`answer ${answer}`.trim()}: ${text.slice(0, 300)}`,
        "see what failed above",
      );
  }
  const took = `in ${Math.round(performance.now() - startMs)} ms`;
  const last = trials.at(-1);
  if (last === undefined) return ok(NAMED, `the server starts and lists its tools, ${took}`);
  return ok(NAMED, `${last.tool} ${`answered ${last.answer ?? ""}`.trim()}, ${took}`);
}

/** Empty when the server lists no tool that uses a sandbox. */
function trialsFor({ autoCreate }: Config["sandbox"], listed: ReadonlySet<string>): readonly TestStart[] {
  const isOffered = ({ tool, dialects }: TestStart): boolean => isAnyListed(listed, [tool, ...dialects]);
  const first = TRIALS.find(isOffered);
  if (first === undefined) return [];
  if (autoCreate || first === CREATE) return [first];
  // The sandbox that it creates is the default of the calls that follow.
  return isOffered(CREATE) ? [CREATE, first] : [];
}

function isAnyListed(listed: ReadonlySet<string>, names: readonly string[]): boolean {
  return names.some((name) => listed.has(name));
}

/** A refusal by policy counts as success: the server starts and responds. */
async function unlessRefused(
  named: Pick<DoctorCheck, "category" | "name">,
  check: () => Promise<DoctorCheck>,
): Promise<DoctorCheck> {
  try {
    return await check();
  } catch (error) {
    if (!(error instanceof AskFailed) || error.kind !== "governance_denied") throw error;
    return ok(named, `the server starts, and its policy refuses the call to the client doctor: ${error.reason}`);
  }
}

const NAMED_BROWSER = { category: "whole way", name: "browser" } as const;
const RED = "255,0,0";
/** A script writes the version, so it appears only if the page runs scripts. */
const PAGE = `data:text/html,<body style="background:rgb(${RED})"><p id=said></p><script>said.textContent=navigator.userAgent</script>`;
const INSTALL =
  "install it where sandboxes find it: apt-get install chromium, or for containers in sandbox.image; or name it in sandbox.browser.executable";

/** Renders a page in the sandbox's browser, through the tools that a model calls. */
export async function browserCheck(line: Pick<ChildConnection, "call">): Promise<DoctorCheck> {
  const startMs = performance.now();
  const opened = await line.call("browser_goto", { url: PAGE, timeout_seconds: 60 });
  if (opened.isError === true) return explain(opened);
  const tookMs = Math.round(performance.now() - startMs);
  const seen = await line.call("browser_snapshot", {});
  const version = /Chrome\/(\d+)/.exec(textOf(seen))?.[1];
  if (version === undefined) return broken(`the page did not run: ${textOf(seen)}`);
  const taken = await line.call("browser_screenshot", {});
  if (taken.isError === true) return explain(taken);
  const colour = firstPixel(Buffer.from(taken.content.find(({ type }) => type === "image")?.data ?? "", "base64"));
  if (colour !== RED) return broken(`a red page came out as ${colour ?? "no picture"}`);
  return ok(NAMED_BROWSER, `Chromium ${version} opened a page in a sandbox in ${tookMs} ms, and drew it`);
}

/** A missing browser is a warning, because not every user needs one. A broken browser is a failure. */
function explain(result: Called): DoctorCheck {
  const said = textOf(result);
  return said.includes("there is no Chromium")
    ? warning(NAMED_BROWSER, "sandboxes have no Chromium", INSTALL)
    : broken(said);
}

function broken(said: string): DoctorCheck {
  const [reason = ""] = said.split("\n");
  return failed(
    NAMED_BROWSER,
    reason.slice(0, 600),
    "see docs/browser.md; leave browser out of tools.toolsets to do without",
  );
}

function textOf({ content }: Called): string {
  return content.map(({ text = "" }) => text).join(" ");
}

const SIGNATURE_BYTES = 8;
/** Length, type and checksum of a PNG chunk. */
const CHUNK_FRAME_BYTES = 12;

/**
 * The colour of the upper left pixel of a PNG, for example `255,0,0`. No PNG filter changes the first pixel of the
 * first row, so the filter type does not matter.
 */
export function firstPixel(png: Buffer): string | undefined {
  const parts: Buffer[] = [];
  for (let at = SIGNATURE_BYTES; at + CHUNK_FRAME_BYTES <= png.length; at += CHUNK_FRAME_BYTES + png.readUInt32BE(at)) {
    if (png.toString("latin1", at + 4, at + 8) === "IDAT")
      parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  if (parts.length === 0) return undefined;
  const [, red, green, blue] = inflateSync(Buffer.concat(parts));
  return [red, green, blue].join(",");
}
