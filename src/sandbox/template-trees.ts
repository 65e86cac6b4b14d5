import { join } from "node:path";
import type { Templates } from "./templates.ts";

/** What a built template shows inside, beside the system's own tree; always read-only. */
interface TemplateTree {
  readonly folders: readonly { readonly hostPath: string; readonly guestPath: string }[];
  /** Folders inside that come first on the PATH. */
  readonly path: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const PYTHON = "/opt/template/python";
/** Where `import` looks last, from whatever folder; it knows no search path of its own. */
const NODE_MODULES = "/node_modules";

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
