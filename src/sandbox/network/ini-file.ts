import { readFile } from "node:fs/promises";

export interface IniEntry {
  readonly section: string;
  readonly key: string;
  readonly value: string;
}

/** The entries of an ini file as pip and npm write it: `key = value`, indented lines continue a value. Empty when there is no such file. */
export async function readIniFile(path: string): Promise<readonly IniEntry[]> {
  try {
    return parseIni(await readFile(path, "utf8"));
  } catch {
    // An absent or closed file configures nothing.
    return [];
  }
}

export function parseIni(text: string): readonly IniEntry[] {
  const entries: IniEntry[] = [];
  let section = "";
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === "" || /^\s*[#;]/.test(line)) continue;
    const last = entries.at(-1);
    if (/^\s/.test(line) && last !== undefined && last.section === section) {
      entries[entries.length - 1] = { ...last, value: `${last.value}\n${line.trim()}`.trim() };
      continue;
    }
    const header = /^\s*\[([^\]]*)\]/.exec(line)?.[1];
    if (header !== undefined) {
      section = header.trim();
      continue;
    }
    const [key = "", ...rest] = line.split("=");
    entries.push({ section, key: key.trim(), value: rest.join("=").trim() });
  }
  return entries;
}
