import { userInfo } from "node:os";
import { loadConfig } from "../config/load.ts";
import type { CommandAction } from "./command-action.ts";
import { toLoadOptions } from "./config-flags.ts";
import { UsageError } from "./usage-error.ts";

/** Who decides is the user of the machine: only the owner of the data folder can reach the server at all. */
export function approvalsDecide(decision: "approve" | "deny"): CommandAction {
  return async ({ terminal, args, flags }) => {
    const [id = ""] = args;
    const { config } = await loadConfig(toLoadOptions(flags));
    const { decideApproval } = await import("../server/control-client.ts");
    const reason = typeof flags["reason"] === "string" ? flags["reason"] : "";
    const by = `local:${userInfo().username}`;
    if (!(await decideApproval(config.sandbox.root, { id, decision, by, reason }))) {
      throw new UsageError(`no call waits under ${id}; \`owlclaw mcp-server approvals list\` shows those that do`);
    }
    terminal.err(decision === "approve" ? `${id} may run, once.\n` : `${id} is refused.\n`);
    return 0;
  };
}
