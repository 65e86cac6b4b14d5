import type { FileTextsParams } from "./files/texts-rpc.ts";
import { ParamReader } from "./params.ts";
import type {
  CodeRunParams,
  FileListParams,
  FileReadParams,
  FileReplaceParams,
  FileSearchParams,
  FileWriteParams,
  ProcessKillParams,
  ShellExecParams,
  ShellKillParams,
  ShellOutputParams,
  TerminalInputParams,
  TerminalOpenParams,
} from "./rpc.ts";

/** An optional field is there or not; it is never undefined. */
export function optional<K extends string, V>(name: K, value: V | undefined): { [key in K]?: V } {
  const entry: { [key in K]?: V } = {};
  if (value !== undefined) entry[name] = value;
  return entry;
}

export function toCodeRun(params: unknown): CodeRunParams {
  const reader = new ParamReader(params);
  return {
    callId: reader.text("callId"),
    language: reader.oneOf("language", ["python", "node"]),
    code: reader.text("code"),
    timeoutMs: reader.integer("timeoutMs"),
    maxOutputChars: reader.integer("maxOutputChars"),
  };
}

export function toCodeWarm(params: unknown): { language: CodeRunParams["language"]; preload: string[] } {
  const reader = new ParamReader(params);
  return { language: reader.oneOf("language", ["python", "node"]), preload: reader.texts("preload") };
}

export function toShellExec(params: unknown): ShellExecParams {
  const reader = new ParamReader(params);
  return {
    callId: reader.text("callId"),
    command: reader.text("command"),
    ...optional("cwd", reader.optionalText("cwd")),
    ...optional("env", reader.optionalTextRecord("env")),
    ...optional("stdin", reader.optionalText("stdin")),
    timeoutMs: reader.integer("timeoutMs"),
    maxOutputChars: reader.integer("maxOutputChars"),
    background: reader.flag("background"),
  };
}

export function toShellOutput(params: unknown): ShellOutputParams {
  const reader = new ParamReader(params);
  return {
    processId: reader.text("processId"),
    cursor: reader.integer("cursor"),
    maxChars: reader.integer("maxChars"),
    waitMs: reader.integer("waitMs"),
  };
}

export function toShellKill(params: unknown): ShellKillParams {
  const reader = new ParamReader(params);
  return { processId: reader.text("processId"), signal: reader.oneOf("signal", ["SIGTERM", "SIGKILL", "SIGINT"]) };
}

export function toFileRead(params: unknown): FileReadParams {
  const reader = new ParamReader(params);
  return {
    path: reader.text("path"),
    encoding: reader.oneOf("encoding", ["utf-8", "base64", "auto", "latin1", "utf-16le"]),
    ...optional("startLine", reader.optionalInteger("startLine")),
    ...optional("endLine", reader.optionalInteger("endLine")),
    ...optional("offset", reader.optionalInteger("offset")),
    ...optional("length", reader.optionalInteger("length")),
    maxBytes: reader.integer("maxBytes"),
  };
}

export function toFileWrite(params: unknown): FileWriteParams {
  const reader = new ParamReader(params);
  return {
    path: reader.text("path"),
    content: reader.text("content"),
    encoding: reader.oneOf("encoding", ["utf-8", "base64"]),
    mode: reader.oneOf("mode", ["overwrite", "append", "create"]),
    ...optional("permissions", reader.optionalInteger("permissions")),
  };
}

export function toFileList(params: unknown): FileListParams {
  const reader = new ParamReader(params);
  return {
    path: reader.text("path"),
    recursive: reader.flag("recursive"),
    ...optional("glob", reader.optionalText("glob")),
    includeHidden: reader.flag("includeHidden"),
    maxEntries: reader.integer("maxEntries"),
  };
}

export function toFileTexts(params: unknown): FileTextsParams {
  const reader = new ParamReader(params);
  return { paths: reader.texts("paths"), maxBytes: reader.integer("maxBytes") };
}

export function toFileSearch(params: unknown): FileSearchParams {
  const reader = new ParamReader(params);
  return {
    pattern: reader.text("pattern"),
    isRegex: reader.flag("isRegex"),
    path: reader.text("path"),
    ...optional("glob", reader.optionalText("glob")),
    ignoreCase: reader.flag("ignoreCase"),
    includeHidden: reader.flag("includeHidden"),
    contextLines: reader.integer("contextLines"),
    maxMatches: reader.integer("maxMatches"),
  };
}

export function toTerminalOpen(params: unknown): TerminalOpenParams {
  const reader = new ParamReader(params);
  return { callId: reader.text("callId"), cols: reader.integer("cols"), rows: reader.integer("rows") };
}

export function toTerminalInput(params: unknown): TerminalInputParams {
  const reader = new ParamReader(params);
  return { callId: reader.text("callId"), text: reader.text("text") };
}

export function toProcessKill(params: unknown): ProcessKillParams {
  const reader = new ParamReader(params);
  return { pid: reader.integer("pid"), signal: reader.oneOf("signal", ["SIGTERM", "SIGKILL"]) };
}

export function toFileReplace(params: unknown): FileReplaceParams {
  const reader = new ParamReader(params);
  return {
    path: reader.text("path"),
    oldText: reader.text("oldText"),
    newText: reader.text("newText"),
    replaceAll: reader.flag("replaceAll"),
  };
}
