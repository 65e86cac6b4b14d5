import type { GuestResult } from "../../contract/guest.ts";
import * as z from "zod";
import type { ApiRoute } from "./api.ts";
import type { SandboxProcess } from "./contract-files.ts";
import { bodyAs } from "./request-body.ts";
import type { OperatorSandboxService } from "./sandbox-service.ts";
import type { Takeovers } from "./takeovers.ts";
import { OwlError } from "../errors/owl-error.ts";

const MAX_INPUT_CHARS = 65_536;
const MAX_SIDE = 1000;
const TIMEOUT_MS = 10_000;

const side = z.int().min(1).max(MAX_SIDE);
const terminalSchema = z.union([
  z.strictObject({ input: z.string().max(MAX_INPUT_CHARS) }),
  z.strictObject({ resize: z.strictObject({ cols: side, rows: side }) }),
]);

/** `sandboxes/{id}/takeover`, `giveback`, `terminal` and `processes`: an operator works in a sandbox. */
export function takeoverRoutes(service: OperatorSandboxService, takeovers: Takeovers): readonly ApiRoute[] {
  return [
    {
      method: "POST",
      path: "sandboxes/{id}/takeover",
      answer: async ({ operator, parts: [id = ""] }) => {
        await takeovers.take(operator, id);
        return { takenOverBy: operator.id };
      },
    },
    {
      method: "POST",
      path: "sandboxes/{id}/giveback",
      answer: async ({ operator, parts: [id = ""] }) => {
        await takeovers.giveBack(operator, id);
        return {};
      },
    },
    {
      method: "POST",
      path: "sandboxes/{id}/terminal",
      answer: async ({ operator, parts: [id = ""], body }) => {
        const request = bodyAs(terminalSchema, body);
        if ("input" in request) await takeovers.type(operator, id, request.input);
        else await takeovers.resize(operator, id, request.resize);
        return {};
      },
    },
    ...processRoutes(service),
  ];
}

function processRoutes(service: OperatorSandboxService): readonly ApiRoute[] {
  return [
    {
      method: "GET",
      path: "sandboxes/{id}/processes",
      answer: ({ parts: [id = ""], signal }) =>
        service.use(id, async (sandbox) => {
          const { processes } = await sandbox.request("process.list", {}, { timeoutMs: TIMEOUT_MS, signal });
          return { processes: processes.map(toShown) };
        }),
    },
    {
      method: "POST",
      path: "sandboxes/{id}/processes/{pid}/kill",
      answer: async ({ operator, parts: [id = "", text = ""] }) => {
        const pid = /^\d{1,10}$/.test(text) ? Number(text) : 0;
        if (pid === 0) throw new OwlError("invalid_params", "there is no process of this number");
        await service.act(operator, id, { name: "kill", args: { pid } });
        return service.use(id, async (sandbox) => {
          await sandbox.request("process.kill", { pid, signal: "SIGKILL" }, { timeoutMs: TIMEOUT_MS });
          return { pid };
        });
      },
    },
  ];
}

function toShown(listed: GuestResult<"process.list">["processes"][number]): SandboxProcess {
  const { pid, parent, command, cpuMs, ageMs, memoryBytes } = listed;
  return {
    pid,
    parent,
    command,
    memoryBytes,
    // The average over the life of the process. The current value would need two measurements.
    cpuPercent: ageMs === 0 ? 0 : Math.round((cpuMs / ageMs) * 100),
    startedAt: new Date(Date.now() - ageMs).toISOString(),
  };
}
