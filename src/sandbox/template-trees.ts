import { join } from "node:path";
import type { TemplateTree } from "./runtimes/runtime.ts";
import type { Templates } from "./templates.ts";

const PYTHON = "/opt/template/python";
/** Where `import` looks last, from whatever folder; it knows no search path of its own. */
const NODE_MODULES = "/node_modules";

/** What built templates show inside, beside the system's own tree. */
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
