import { loadConfig } from "../config/load.ts";
import { type CommandCall, UsageError } from "./command.ts";
import { toLoadOptions } from "./config-flags.ts";
import { jsonText } from "./text.ts";

/** Prints where the dashboard is served. The link goes to stdout, so that scripts can pass it to a browser. */
export async function dashboardCommand({ terminal, flags }: CommandCall): Promise<number> {
  const { config } = await loadConfig(toLoadOptions(flags));
  const { dashboardAddresses } = await import("../operator/control-client.ts");
  const found = await dashboardAddresses(config.sandbox.root);
  if (found.length === 0) {
    throw new UsageError(
      "no running server with this data folder serves a dashboard: start one with --transport http or --dashboard",
    );
  }
  if (flags["json"] === true) {
    terminal.out(jsonText({ dashboards: found }));
    return 0;
  }
  for (const { url, link } of found) terminal.out(`${link ?? url}\n`);
  const isLink = found.some(({ link }) => link !== undefined);
  terminal.err(
    isLink ? "It opens once, within 10 minutes.\n" : "Log in there with a token of the scope owlclaw:admin.\n",
  );
  return 0;
}
