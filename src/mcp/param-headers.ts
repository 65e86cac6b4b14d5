import type { IncomingHttpHeaders } from "node:http";
import type { Tool } from "../capability/registry.ts";
import { OwlError } from "../errors/owl-error.ts";
import { isObject } from "./json-rpc.ts";
import { decodeHeader } from "./mirror-headers.ts";

/** An argument that the client repeats in a `Mcp-Param-…` header, for proxies that route without reading bodies. */
interface ParamHeader {
  readonly path: readonly string[];
  readonly header: string;
  readonly isNumeric: boolean;
}

const DECIMAL = /^-?\d+(\.\d+)?$/;

const declared = new WeakMap<Tool, readonly ParamHeader[]>();

/** Rejects a header that disagrees with the body: it could get the call past the rules of a proxy. */
export function validateParamHeaders(tool: Tool, args: unknown, headers: IncomingHttpHeaders): void {
  for (const declaration of paramHeadersOf(tool)) {
    const problem = checkHeader(declaration, args, headers[declaration.header]);
    if (problem === undefined) continue;
    throw new OwlError("header_mismatch", `the headers and the body disagree: ${declaration.header} ${problem}`, {
      facts: { header: declaration.header },
    });
  }
}

function checkHeader(
  { path, isNumeric }: ParamHeader,
  args: unknown,
  header: string | string[] | undefined,
): string | undefined {
  const value = path.reduce<unknown>(
    (node, key) => (isObject(node) && Object.hasOwn(node, key) ? node[key] : undefined),
    args,
  );
  // Other types are left to the tool's schema, which rejects them.
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return undefined;
  if (header === undefined) return `is missing for the argument "${path.join(".")}"`;
  const decoded = decodeHeader(Array.isArray(header) ? header.join(", ") : header);
  if (decoded === undefined) return "is not valid base64";
  const isEqual =
    isNumeric && typeof value === "number" && DECIMAL.test(decoded)
      ? Number(decoded) === value
      : decoded === String(value);
  return isEqual ? undefined : `does not have the value of the argument "${path.join(".")}"`;
}

function paramHeadersOf(tool: Tool): readonly ParamHeader[] {
  let found = declared.get(tool);
  if (found === undefined) {
    found = collect(tool.input.json, []);
    declared.set(tool, found);
  }
  return found;
}

function collect(schema: unknown, path: readonly string[]): ParamHeader[] {
  if (!isObject(schema)) return [];
  const name = schema["x-mcp-header"];
  const own =
    typeof name === "string" && path.length > 0
      ? [
          {
            path,
            header: `mcp-param-${name.toLowerCase()}`,
            isNumeric: schema["type"] === "integer" || schema["type"] === "number",
          },
        ]
      : [];
  const properties = isObject(schema["properties"]) ? Object.entries(schema["properties"]) : [];
  return [...own, ...properties.flatMap(([key, child]) => collect(child, [...path, key]))];
}
