import { readFileSync } from "node:fs";

/** Read from package.json, which is one folder above both `src/` and `dist/`. */
const manifest: unknown = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
const version: unknown =
  typeof manifest === "object" && manifest !== null ? Reflect.get(manifest, "version") : undefined;

export const PACKAGE_VERSION: string = typeof version === "string" ? version : "unknown";
