import type { LoadedConfig } from "../config/load.ts";

/** For commands that only show or check a file that was found and is not trusted. */
export function untrustedNote({ file, config }: LoadedConfig): string {
  const handlers = config.handlers.paths.length > 0 ? " Handlers were not loaded." : "";
  return `${file} is not trusted: start refuses it until you have read it and run \`owlclaw mcp-server trust\`.${handlers}\n`;
}
