import type { GuestParams, GuestResult } from "../../contract/guest.ts";
import { closeSync, fstatSync, readFileSync } from "node:fs";
import { BadParams, Failure, fileFailure } from "../failure.ts";
import type { Workspace } from "../paths.ts";
import { decodeText, refuseLoneSurrogates, withBom } from "./text-detection.ts";
import { replaceFile } from "./write.ts";

const FILE_BYTES_MAX = 128 * 1024 * 1024;
const LISTED_LINES = 5;

export function replaceInFile(workspace: Workspace, params: GuestParams["file.replace"]): GuestResult<"file.replace"> {
  if (params.oldText === "") throw new BadParams("old_text must not be empty");
  if (params.oldText === params.newText) throw new BadParams("old_text and new_text are the same");
  refuseLoneSurrogates("new_text", params.newText);
  const { text, hasBom, mode } = load(workspace, params.path);
  const { oldText, newText } = withLineEndingsOf(text, params);
  // Overlapping matches are ambiguous: only one of them can be replaced.
  const places = occurrences(text, { searched: oldText, step: params.replaceAll ? oldText.length : 1 });
  if (places.length === 0) throw noMatch(params.path, { text, oldText });
  if (places.length > 1 && !params.replaceAll) throw severalMatches(params.path, { text, places });
  const replaced = replaceAt(text, { places, oldText, newText });
  const bytes = Buffer.from(replaced, "utf8");
  const content = hasBom ? withBom(bytes) : bytes;
  const place = workspace.openPlace(params.path);
  try {
    const sizeBytes = replaceFile(place, { content, mode, mustBeNew: false });
    return { path: params.path, replacements: places.length, sizeBytes };
  } catch (error) {
    throw fileFailure(error, params.path);
  } finally {
    place.close();
  }
}

function load(workspace: Workspace, path: string): { text: string; hasBom: boolean; mode: number } {
  const { fd, sizeBytes } = workspace.openFile(path);
  try {
    if (sizeBytes > FILE_BYTES_MAX) {
      throw new Failure(
        "not_text",
        `${path}: it is too large to edit in one piece`,
        "use sed or a script in the shell",
      );
    }
    const decoded = decodeText(readFileSync(fd), { isCut: false });
    if (decoded === undefined) {
      throw new Failure("not_text", `${path}: it is no UTF-8 text`, "edit binary files with a script");
    }
    return { ...decoded, mode: fstatSync(fd).mode & 0o7777 };
  } finally {
    closeSync(fd);
  }
}

/** Callers write `\n`; a file with `\r\n` line endings keeps them. */
function withLineEndingsOf(text: string, params: GuestParams["file.replace"]): { oldText: string; newText: string } {
  const { oldText, newText } = params;
  const isWindowsFile = text.includes("\r\n") && !/(^|[^\r])\n/u.test(text);
  if (!isWindowsFile || oldText.includes("\r")) return { oldText, newText };
  const toWindows = (value: string) => value.replaceAll(/\r?\n/gu, "\r\n");
  return { oldText: toWindows(oldText), newText: toWindows(newText) };
}

function occurrences(text: string, { searched, step }: { searched: string; step: number }): number[] {
  const places: number[] = [];
  for (let at = text.indexOf(searched); at !== -1; at = text.indexOf(searched, at + step)) places.push(at);
  return places;
}

function replaceAt(text: string, options: { places: readonly number[]; oldText: string; newText: string }): string {
  const parts: string[] = [];
  let from = 0;
  for (const place of options.places) {
    parts.push(text.slice(from, place), options.newText);
    from = place + options.oldText.length;
  }
  return parts.join("") + text.slice(from);
}

function noMatch(path: string, { text, oldText }: { text: string; oldText: string }): Failure {
  const [firstLine = ""] = oldText.trim().split(/\r?\n/u);
  const near = firstLine === "" ? -1 : text.indexOf(firstLine.trim());
  const hint =
    near === -1
      ? "read the file and copy the text exactly, with its spaces and line breaks"
      : `line ${lineAt(text, near)} has the first line of it, but the rest differs: read it there and copy it exactly`;
  return new Failure("no_match", `${path}: the text to replace is not in it`, hint);
}

function severalMatches(path: string, { text, places }: { text: string; places: readonly number[] }): Failure {
  const lines = places.slice(0, LISTED_LINES).map((place) => lineAt(text, place));
  const more = places.length > LISTED_LINES ? ", …" : "";
  const message = `${path}: the text to replace is there ${places.length} times (lines ${lines.join(", ")}${more})`;
  return new Failure(
    "several_matches",
    message,
    "add lines around it so that it is there once, or set replace_all: true",
  );
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}
