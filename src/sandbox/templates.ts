import type { Language } from "../../contract/guest.ts";
import { OwlError } from "../errors/owl-error.ts";

/** What a sandbox starts from: the system's own tree, and for templates of one's own the packages that were built into it. */
export interface Template {
  readonly name: string;
  /** What `code_run` means when the call names no language; every template has both. */
  readonly language: Language;
  /** Absent for those that are always there. */
  readonly built?: BuiltTree;
}

export interface BuiltTree {
  /** Folder of the host with the packages. */
  readonly folder: string;
  /** As in `name version`. */
  readonly packages: readonly string[];
  readonly sizeBytes: number;
  readonly builtAt: string;
}

export const STOCK_TEMPLATES: readonly Template[] = [
  { name: "python", language: "python" },
  { name: "node", language: "node" },
];

/** The templates that this server knows, by name. */
export class Templates {
  readonly #byName: ReadonlyMap<string, Template>;

  constructor(own: readonly Template[] = []) {
    this.#byName = new Map([...own, ...STOCK_TEMPLATES].map((template) => [template.name, template]));
  }

  get names(): readonly string[] {
    const stock = STOCK_TEMPLATES.map(({ name }) => name);
    return [...stock, ...[...this.#byName.keys()].filter((name) => !stock.includes(name)).sort()];
  }

  get(name: string): Template {
    const template = this.#byName.get(name);
    if (template !== undefined) return template;
    throw new OwlError("invalid_arguments", `there is no template "${name.slice(0, 64)}"`, {
      hint: `use one of ${this.names.join(", ")}, or build it with: owlclaw mcp-server template build`,
    });
  }
}
