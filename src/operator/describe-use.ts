import type { ObservedCall, CallOutcome } from "../sandbox/sandbox-observer.ts";
import type { ActivityKind, CodeCell } from "./activity-log.ts";

const MAX_CODE_CHARS = 16_384;
const MAX_RESULT_CHARS = 8192;
const MAX_IMAGES = 8;
const MAX_IMAGE_CHARS = 2_000_000;

export interface SaidOfUse {
  readonly text?: string;
  readonly cell?: CodeCell;
}

/** What a call does, for operators who watch. The shape of the input depends on the schema of the tool. */
export function describeUse({ tool, input, language }: ObservedCall): SaidOfUse & { readonly kind: ActivityKind } {
  const code = textIn(input, "code");
  if (code !== undefined) return { kind: "code", cell: cellOf(input, { code, language }) };
  const command = textIn(input, "command");
  if (command !== undefined) return { kind: "shell", text: `$ ${command}\n` };
  const what = textIn(input, "url") ?? textIn(input, "path") ?? textIn(input, "pattern") ?? "";
  return { kind: kindOf(tool), text: `${tool} ${what}`.trimEnd() };
}

/** The result of a call, when it contains more than the output. */
export function describeOutcome(
  { input, language }: ObservedCall,
  { value, blocks = [], failure }: CallOutcome,
): SaidOfUse | undefined {
  const code = textIn(input, "code");
  if (code === undefined) return failure === undefined ? undefined : { text: `${failure.reason}\n` };
  const result = textIn(value, "value");
  const error = textIn(value, "traceback") ?? failure?.reason;
  const images = imagesIn(blocks);
  return {
    cell: {
      ...cellOf(input, { code, language }),
      ...(result !== undefined && { result: result.slice(0, MAX_RESULT_CHARS) }),
      ...(error !== undefined && { error: error.slice(0, MAX_RESULT_CHARS) }),
      ...(images.length > 0 && { images }),
    },
  };
}

/** The output in the result of a call. A call that ends immediately has streamed nothing before. */
export function printedBy({
  value,
}: CallOutcome): readonly { readonly stream: "stdout" | "stderr"; readonly text: string }[] {
  return (["stdout", "stderr"] as const).flatMap((stream) => {
    const text = textIn(value, stream) ?? "";
    return text === "" ? [] : [{ stream, text }];
  });
}

function kindOf(tool: string): ActivityKind {
  if (tool.startsWith("browser")) return "browser";
  return tool.startsWith("shell") ? "shell" : "file";
}

function cellOf(input: unknown, { code, language }: Pick<CodeCell, "code" | "language">): CodeCell {
  const named = textIn(input, "language") ?? textIn(input, "template");
  return { language: named ?? language, code: code.slice(0, MAX_CODE_CHARS) };
}

function imagesIn(blocks: NonNullable<CallOutcome["blocks"]>): { readonly mime: string; readonly data: string }[] {
  return blocks
    .filter(({ type }) => type === "image")
    .flatMap((block) => {
      const [mime, data] = [textIn(block, "mimeType"), textIn(block, "data")];
      return mime === undefined || data === undefined || data.length > MAX_IMAGE_CHARS ? [] : [{ mime, data }];
    })
    .slice(0, MAX_IMAGES);
}

function textIn(value: unknown, name: string): string | undefined {
  const found: unknown = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  return typeof found === "string" ? found : undefined;
}
