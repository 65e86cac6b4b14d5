import type { Language } from "../../contract/guest.ts";
import { OwlError } from "../errors/owl-error.ts";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { TEMPLATE_NAME, templateFolder, templatesWithImage } from "../config/template-name.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { TemplateTree } from "./runtimes/runtime.ts";

export const STOCK_TEMPLATES: readonly Template[] = [
  { name: "python", language: "python" },
  { name: "node", language: "node" },
];
const PYTHON = "/opt/template/python";
/** Node's `import` has no search path, but looks in this folder last. */
const NODE_MODULES = "/node_modules";

/** What a sandbox starts from: the system tree and, for built templates, packages. */
export interface Template {
  readonly name: string;
  /** The default language of `code_run`; every template has both. */
  readonly language: Language;
  /** Absent for the stock templates. */
  readonly built?: BuiltTree;
}

export interface BuiltTree {
  /** Folder of the host with the packages. */
  readonly folder: string;
  /** Each as `name version`. */
  readonly packages: readonly string[];
  readonly sizeBytes: number;
  readonly builtAt: string;
}

/** The templates of this server, by name. */
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

export const manifestSchema = z.object({
  language: z.enum(["python", "node"]),
  packages: z.array(z.string()),
  sizeBytes: z.number(),
  builtAt: z.string(),
});

export interface TemplateSettings {
  readonly root: string;
  readonly templates: Readonly<Record<string, { readonly image?: string | undefined }>>;
}

/** The templates that were built under the data folder or are images, beside those that are always there. A broken one is left out. */
export async function readTemplates(settings: TemplateSettings, logger: Logger): Promise<Templates> {
  const { root: dataFolder } = settings;
  const names = await readdir(join(dataFolder, "templates")).catch(() => []);
  const found: Template[] = templatesWithImage(settings.templates).map((name) => ({ name, language: "python" }));
  for (const name of names.filter((each) => TEMPLATE_NAME.test(each))) {
    try {
      found.push(await readTemplate(dataFolder, name));
    } catch (error) {
      logger.warning("a template cannot be used", { template: name, error });
    }
  }
  return new Templates(found);
}

async function readTemplate(dataFolder: string, name: string): Promise<Template> {
  const folder = templateFolder(dataFolder, name);
  const text = await readFile(join(folder, "template.json"), "utf8");
  const { language, ...rest } = manifestSchema.parse(JSON.parse(text));
  return { name, language, built: { folder, ...rest } };
}

/** The folders and variables that built templates add to the system tree. */
export function templateTrees(templates: Templates): Record<string, TemplateTree> {
  const trees: Record<string, TemplateTree> = {};
  for (const name of templates.names) {
    const { built } = templates.get(name);
    if (built !== undefined) trees[name] = treeOf(built.folder);
  }
  return trees;
}

function treeOf(folder: string): TemplateTree {
  return {
    folders: [
      { hostPath: join(folder, "python"), guestPath: PYTHON },
      { hostPath: join(folder, "node_modules"), guestPath: NODE_MODULES },
    ],
    path: [`${PYTHON}/bin`, `${NODE_MODULES}/.bin`],
    env: { PYTHONPATH: PYTHON },
  };
}
