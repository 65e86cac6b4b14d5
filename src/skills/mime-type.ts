import { extname } from "node:path";

const BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  [".md", "text/markdown"],
  [".markdown", "text/markdown"],
  [".txt", "text/plain"],
  [".json", "application/json"],
  [".yaml", "application/yaml"],
  [".yml", "application/yaml"],
  [".toml", "application/toml"],
  [".py", "text/x-python"],
  [".sh", "application/x-sh"],
  [".bash", "application/x-sh"],
  [".js", "text/javascript"],
  [".mjs", "text/javascript"],
  [".ts", "text/typescript"],
  [".sql", "application/sql"],
  [".html", "text/html"],
  [".css", "text/css"],
  [".csv", "text/csv"],
  [".xml", "application/xml"],
  [".svg", "image/svg+xml"],
  [".png", "image/png"],
  [".jpg", "image/jpeg"],
  [".jpeg", "image/jpeg"],
  [".gif", "image/gif"],
  [".webp", "image/webp"],
  [".pdf", "application/pdf"],
]);

export function mimeTypeOf(name: string): string {
  return BY_EXTENSION.get(extname(name).toLowerCase()) ?? "application/octet-stream";
}
