import type { Config } from "../../config/schema.ts";
import { browserCheck } from "./browser-check.ts";
import { type DoctorCheck, type DoctorLook, failed, ok } from "./check.ts";
import { ChildLine } from "./child-line.ts";

const NAMED = { category: "whole way", name: "a call over stdio" } as const;

/** Starts this very program as a client would, and has tools run. `command` is how it is started, without the transport. */
export function wholeWayLook(config: Config, command: readonly string[]): DoctorLook {
  return {
    async look() {
      const line = new ChildLine(command);
      const checks: DoctorCheck[] = [];
      try {
        checks.push(await callTool(line, config));
        if (hasBrowser(config) && checks.every(({ status }) => status === "ok")) checks.push(await browserCheck(line));
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

async function callTool(line: ChildLine, { sandbox }: Config): Promise<DoctorCheck> {
  const startMs = performance.now();
  const clientInfo = { name: "owlclaw-doctor", version: "1" };
  await line.ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  line.tell("notifications/initialized");
  const took = (): string => `${Math.round(performance.now() - startMs)} ms`;
  if (!sandbox.enabled) {
    await line.ask("tools/list", {});
    return ok(NAMED, `the server starts and lists its tools, in ${took()}`);
  }
  const called = await line.call("code_run", { code: "print(6*7)" });
  const text = JSON.stringify(called);
  if (called.isError !== true && text.includes("42")) return ok(NAMED, `code_run answered 42, in ${took()}`);
  return failed(NAMED, `code_run did not answer 42: ${text.slice(0, 300)}`, "see what failed above");
}

function hasBrowser({ sandbox, tools: { toolsets } }: Config): boolean {
  return sandbox.enabled && (toolsets.length === 0 || toolsets.includes("browser"));
}
