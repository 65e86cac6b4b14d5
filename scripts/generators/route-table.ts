import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ROUTES } from "../../src/transport/http/http-routes.ts";
import type { Generator } from "./generator.ts";
import { toTable } from "./markdown-table.ts";

const PAGE = "docs/protocol.md";
const [BEGIN, END] = ["<!-- routes -->", "<!-- /routes -->"];
const WHO = {
  anyone: "everybody",
  client: "clients",
  operator: "operators",
  server: "other servers",
  page: "the page",
};

/** The table of routes in docs/protocol.md. */
export const routeTable: Generator = async (root) => {
  const text = await readFile(join(root, PAGE), "utf8");
  const [before, after] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (before === -1 || after === -1) throw new Error(`${PAGE} has no ${BEGIN} … ${END}`);
  const rows = ROUTES.map(({ methods, path, role, about }) => [
    methods.map((method) => `\`${method}\``).join(", "),
    `\`${path}\``,
    WHO[role],
    about,
  ]);
  const table = toTable(["method", "path", "for", "what"], rows);
  return new Map([[PAGE, `${text.slice(0, before + BEGIN.length)}\n\n${table}\n\n${text.slice(after)}`]]);
};
