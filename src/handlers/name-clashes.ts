import type { ListKind, Replaced } from "../capability/registry.ts";
import type { FileShelf } from "./file-shelf.ts";

export interface NameClash {
  readonly file: string;
  readonly list: ListKind;
  readonly name: string;
  readonly reason: string;
  readonly fix: string;
}

/** Which files have a name that is another's. Of several files the first one has it, in the order of the shelves. */
export function nameClashes(refused: Replaced["refused"], shelves: readonly FileShelf[]): readonly NameClash[] {
  const names = new Map(refused.map(({ list, name }) => [`${list} ${name}`, { list, name }]));
  return [...names].flatMap(([key, { list, name }]) => {
    const files = shelves.flatMap((shelf) =>
      namesIn(shelf, list)
        .filter((own) => own === name)
        .map(() => shelf.file),
    );
    const isAllRefused = refused.filter((each) => `${each.list} ${each.name}` === key).length === files.length;
    const [owner = ""] = files;
    const losers = isAllRefused ? files : files.slice(1);
    const what = list.slice(0, -1);
    const reason = isAllRefused
      ? `the server has a ${what} "${name}" of its own`
      : `${owner} has a ${what} "${name}" already`;
    return losers.map((file) => ({ file, list, name, reason, fix: "rename one of them" }));
  });
}

function namesIn({ tools, resources, prompts }: FileShelf, list: ListKind): readonly string[] {
  if (list === "tools") return tools.map(({ name }) => name);
  if (list === "prompts") return prompts.map(({ definition }) => definition.name);
  return resources.map(({ definition }) => definition.uri);
}
