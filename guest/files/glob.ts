import { Failure } from "../failure.ts";

const GLOB_CHARS_MAX = 1_000;
const SIMPLE_TOKENS: Readonly<Record<string, string>> = { "**/": "(?:[^/]+/)*", "*": "[^/]*", "?": "[^/]", "-": "-" };

/** `*`, `?`, `[a-z]`, `{a,b}` within a name; `**` across folders. A pattern without a slash is matched against the last name of a path. */
export function compileGlob(glob: string): (path: string) => boolean {
  if (glob.length > GLOB_CHARS_MAX) throw badGlob(glob.slice(0, 40), "it is too long");
  const isAboutName = !glob.includes("/");
  const normal = glob.replace(/^\.?\//u, "");
  let pattern: RegExp;
  try {
    pattern = new RegExp(`^${translate(normal)}$`, "su");
  } catch {
    throw badGlob(glob, "its brackets do not match");
  }
  return (path) => pattern.test(isAboutName ? path.slice(path.lastIndexOf("/") + 1) : path);
}

/** Whether it can only match below the listed folder. */
export function reachesBelow(glob: string): boolean {
  return glob.includes("/") || glob.includes("**");
}

function translate(glob: string): string {
  let depth = 0;
  return glob.replaceAll(/\*\*\/|\*+|\?|\[[!^]?\]?[^\]]*\]|[{},]|[\\^$.|+()[\]/-]/gu, (token) => {
    const simple = SIMPLE_TOKENS[token];
    if (simple !== undefined) return simple;
    if (token.startsWith("**")) return ".*";
    if (token === "{") return ((depth += 1), "(?:");
    if (token === "}") return depth > 0 ? ((depth -= 1), ")") : String.raw`\}`;
    if (token === ",") return depth > 0 ? "|" : ",";
    if (token.startsWith("[") && token.length > 2) return characterClass(token);
    return `\\${token}`;
  });
}

function characterClass(token: string): string {
  const isNegated = /^\[[!^]/u.test(token);
  const members = token.slice(isNegated ? 2 : 1, -1).replaceAll(/[\\\][^&~]/gu, String.raw`\$&`);
  return isNegated ? `[^/${members}]` : `[${members}]`;
}

function badGlob(glob: string, reason: string): Failure {
  return new Failure("bad_pattern", `${glob}: ${reason}`, 'write it as in "*.ts" or "src/**/*.{js,ts}"');
}
