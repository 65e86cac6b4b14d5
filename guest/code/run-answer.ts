import type { CodeError, GuestResult, Picture } from "../../contract/guest.ts";
import { isRecord } from "../processes/line-reader.ts";

/** What a driver says about one run. */
export interface RunAnswer {
  readonly status: "ok" | "error";
  readonly value?: NonNullable<GuestResult<"code.run">["value"]>;
  readonly error?: CodeError;
  readonly pictures: readonly Picture[];
  /** As the interpreter measured it. */
  readonly durationMs?: number;
}

const MIME_TYPES: readonly Picture["mimeType"][] = ["image/png", "image/jpeg", "image/svg+xml"];

/** User code can write to the driver's descriptors too, so nothing is taken as it is. */
export function parseRunAnswer(answer: unknown): RunAnswer | undefined {
  if (!isRecord(answer) || (answer["status"] !== "ok" && answer["status"] !== "error")) return undefined;
  const value = toValue(answer["value"]);
  const error = toError(answer["error"]);
  const pictures: unknown = answer["pictures"];
  return {
    status: answer["status"],
    ...(value === undefined ? {} : { value }),
    ...(error === undefined ? {} : { error }),
    pictures: Array.isArray(pictures) ? pictures.flatMap(toPicture) : [],
    ...(isDuration(answer["ms"]) && { durationMs: answer["ms"] }),
  };
}

function isDuration(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function toValue(value: unknown): RunAnswer["value"] {
  if (!isRecord(value) || typeof value["text"] !== "string") return undefined;
  return { text: value["text"], ...(typeof value["html"] === "string" ? { html: value["html"] } : {}) };
}

function toError(value: unknown): CodeError | undefined {
  if (!isRecord(value)) return undefined;
  return { name: String(value["name"]), message: String(value["message"]), traceback: String(value["traceback"]) };
}

function toPicture(value: unknown): Picture[] {
  if (!isRecord(value) || typeof value["data"] !== "string") return [];
  const mimeType = MIME_TYPES.find((known) => known === value["mimeType"]);
  return mimeType === undefined ? [] : [{ mimeType, data: value["data"] }];
}
