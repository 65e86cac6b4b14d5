import { statSync } from "node:fs";
import { dirname, join } from "node:path";

const IMPORT =
  /^[ \t]*(?:from[ \t]+(?<dots>\.*)(?<base>[\w.]*)[ \t]+import[ \t]+(?<names>\([^)]*\)|[^#\n]+)|import[ \t]+(?<modules>[^#\n]+))/gm;

/** Files beside a Python file that it may import, by what its text says: too many do no harm. */
export function pythonImports(file: string, text: string): readonly string[] {
  return pythonPlaces(file, text).filter((path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true);
}

/** The same, and where such files would be. */
export function pythonPlaces(file: string, text: string): readonly string[] {
  const found = new Set<string>();
  for (const { groups = {} } of text.matchAll(IMPORT)) {
    const { dots = "", base = "", names, modules } = groups;
    // `from . import a` is beside the file, each further dot is one folder up.
    const folder = join(dirname(file), ...Array.from({ length: Math.max(0, dots.length - 1) }, () => ".."));
    const dotted =
      modules === undefined
        ? [base, ...wordsOf(names).map((name) => (base === "" ? name : `${base}.${name}`))]
        : wordsOf(modules);
    for (const name of dotted) for (const path of placesOf(folder, name)) if (path !== file) found.add(path);
  }
  return [...found];
}

/** The names of a list of imports, without what they are called afterwards. */
function wordsOf(list = ""): readonly string[] {
  return list
    .replaceAll(/[()\\]/g, " ")
    .split(",")
    .map((item) => item.trim().split(/\s+/)[0] ?? "")
    .filter((name) => /^\w[\w.]*$/.test(name));
}

/** A module, and the packages around it: all of them run. */
function placesOf(folder: string, name: string): readonly string[] {
  const parts = name.split(".").filter((part) => part !== "");
  return parts.flatMap((_part, index) => {
    const path = join(folder, ...parts.slice(0, index + 1));
    return [join(path, "__init__.py"), `${path}.py`];
  });
}
