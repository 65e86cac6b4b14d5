import type { FromWorker } from "./worker-protocol.ts";

type Fields = Readonly<Record<string, unknown>>;
type Check = (fields: Fields) => boolean;

const isNumber = (value: unknown): boolean => typeof value === "number";
const isText = (value: unknown): boolean => typeof value === "string";
const isTextIfAny = (value: unknown): boolean => value === undefined || typeof value === "string";
const isNumberIfAny = (value: unknown): boolean => value === undefined || typeof value === "number";

const hasId: Check = ({ id }) => isNumber(id);

/** What each message must have before anybody acts on it: a worker in a sandbox may be anybody's. */
const CHECKS: Readonly<Record<FromWorker["t"], Check>> = {
  hello: ({ version }) => isText(version),
  done: ({ id, bytes, ms }) => isNumber(id) && isTextIfAny(bytes) && isNumberIfAny(ms),
  fail: ({ id, error, ms }) => isNumber(id) && isError(error) && isNumberIfAny(ms),
  skipped: hasId,
  progress: ({ id, done, total, message }) =>
    isNumber(id) && isNumberIfAny(done) && isNumberIfAny(total) && isTextIfAny(message),
  log: ({ id, level, logger }) => isNumber(id) && isText(level) && isTextIfAny(logger),
  ask: ({ id, q, what, key }) => isNumber(id) && isNumber(q) && isText(what) && isTextIfAny(key),
  charge: ({ id, amount }) => isNumber(id) && typeof amount === "number" && Number.isFinite(amount) && amount >= 0,
  listChanged: ({ id, list }) => isNumber(id) && isText(list),
  closeStream: hasId,
  changed: ({ n }) => isNumber(n),
  notice: ({ level, message, text }) =>
    (level === "info" || level === "warning" || level === "error") && isText(message) && isTextIfAny(text),
  pong: () => true,
};

export function isFromWorker(value: unknown): value is FromWorker {
  if (!isFields(value)) return false;
  const { t } = value;
  return isType(t) && CHECKS[t](value);
}

function isType(value: unknown): value is FromWorker["t"] {
  return typeof value === "string" && Object.hasOwn(CHECKS, value);
}

function isError(value: unknown): boolean {
  if (!isFields(value)) return false;
  const { message, kind, hint, stack, facts, issues, q, unloaded = false } = value;
  return (
    isText(message) &&
    [kind, hint, stack].every(isTextIfAny) &&
    (facts === undefined || isFields(facts)) &&
    (issues === undefined || (Array.isArray(issues) && issues.every(isIssue))) &&
    isNumberIfAny(q) &&
    typeof unloaded === "boolean"
  );
}

function isIssue(value: unknown): boolean {
  return isFields(value) && isText(value["path"]) && isText(value["message"]);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
