import { parseRedactRule } from "../config/redact-rule.ts";
import { SECRET_MARKS, SECRET_PATTERNS, type SecretPattern } from "./secret-patterns.ts";
import { createHash } from "node:crypto";

export const REDACTED = "[redacted]";

/** Removes secrets from what the ledger and the log store. */
export interface Redactor {
  /** Whether the value of a key with this name is a secret, whatever the value. */
  isSecretKey(name: string): boolean;
  /** The text with secrets replaced. The caller must limit the length of the text. */
  text(text: string): string;
  /** Whether `text` certainly would not change the text. */
  isClean(text: string): boolean;
}

/** Key names, in lower case and without separators. */
const SECRET_KEYS: ReadonlySet<string> = new Set([
  "auth",
  "authorization",
  "proxyauthorization",
  "cookie",
  "cookies",
  "setcookie",
  "setcookies",
  "cookieheader",
  "cookiejar",
  "pwd",
  "pass",
  "pin",
  "jwt",
  "bearer",
  "sessionkey",
  // The session id gives access to the sandbox of an anonymous caller.
  "sessionid",
  "mcpsessionid",
  "signature",
  "connectionstring",
  "dsn",
  "otp",
  "totp",
]);

/** One or several of these words, or a derived value such as a hash. `tokens` alone is a count, as in `max_tokens`. */
const SECRET_ENDINGS =
  /(?:(?:password|passwd|passphrase|passcode|secret|apikey|accesskey|secretkey|privatekey|signingkey|encryptionkey|credential|authheader|(?:access|refresh|auth|api|bearer|secret)token)s?|token)(?:value|string|hash|base64|confirmation)?$/;

/** Names that end like a secret and are not. */
const HARMLESS_KEYS: ReadonlySet<string> = new Set(["progresstoken", "pagetoken", "nextpagetoken", "nexttoken"]);

/** Callers choose the names of keys, so the cache is limited. */
const MAX_REMEMBERED_KEYS = 2000;

/** `rules` as in `ledger.redact`: key names, and patterns written as /…/. */
export function createRedactor(rules: readonly string[] = []): Redactor {
  const ownKeys = new Set<string>();
  const ownPatterns: SecretPattern[] = [];
  for (const rule of rules.map(parseRedactRule)) {
    if (rule?.kind === "key") ownKeys.add(normalize(rule.name));
    else if (rule?.kind === "pattern") ownPatterns.push({ pattern: rule.pattern, replacement: REDACTED });
  }
  const known = new Map<string, boolean>();
  const decide = (name: string): boolean => {
    const key = normalize(name);
    if (ownKeys.has(key)) return true;
    return !HARMLESS_KEYS.has(key) && (SECRET_KEYS.has(key) || SECRET_ENDINGS.test(key));
  };
  return {
    isSecretKey(name) {
      const earlier = known.get(name);
      if (earlier !== undefined) return earlier;
      const isSecret = decide(name);
      if (known.size < MAX_REMEMBERED_KEYS && name.length <= 64) known.set(name, isSecret);
      return isSecret;
    },
    isClean: (text) => ownPatterns.length === 0 && !SECRET_MARKS.test(text),
    text(text) {
      // Most texts contain no secret, and one test for all marks is cheaper than a test of each pattern.
      const withoutKnown = SECRET_MARKS.test(text) ? replaceAll(text, SECRET_PATTERNS) : text;
      return ownPatterns.length === 0 ? withoutKnown : replaceAll(withoutKnown, ownPatterns);
    },
  };
}

/** In lists of variables, headers or form fields, the name of a secret is in a sibling field. */
const NAMES_BESIDE = ["name", "key", "field", "header", "variable", "Name", "Key"] as const;

/** Whether the value of a field is a secret: by its own name, or, for `value`, by the name in a sibling field. */
export function isSecretField(redactor: Redactor, holder: object, name: string): boolean {
  if (name !== "value" && name !== "Value") return redactor.isSecretKey(name);
  return NAMES_BESIDE.some((each) => {
    const beside: unknown = Object.hasOwn(holder, each) ? Reflect.get(holder, each) : undefined;
    return typeof beside === "string" && redactor.isSecretKey(beside);
  });
}

function replaceAll(text: string, patterns: readonly SecretPattern[]): string {
  return patterns.reduce((rest, { pattern, replacement }) => rest.replace(pattern, replacement), text);
}

function normalize(name: string): string {
  return name
    .slice(0, 128)
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]/gu, "");
}

/** The redactor, which also removes these texts: ids that give access. */
export function hiding(redactor: Redactor, texts: readonly string[] | undefined): Redactor {
  return texts === undefined || texts.length === 0 ? redactor : new HidingRedactor(redactor, texts);
}

export function withoutTexts(text: string, texts: readonly string[] = []): string {
  return texts.reduce((rest, hidden) => rest.replaceAll(hidden, REDACTED), text);
}

class HidingRedactor implements Redactor {
  readonly #redactor: Redactor;
  readonly #texts: readonly string[];

  constructor(redactor: Redactor, texts: readonly string[]) {
    this.#redactor = redactor;
    this.#texts = texts;
  }

  isSecretKey(name: string): boolean {
    return this.#redactor.isSecretKey(name);
  }

  text(text: string): string {
    return withoutTexts(this.#redactor.text(text), this.#texts);
  }

  isClean(text: string): boolean {
    return this.#redactor.isClean(text) && !this.#texts.some((hidden) => text.includes(hidden));
  }
}

const SHOWN_CHARS = 16;

/**
 * The name of a sandbox session in logs and in the ledger. The session id itself gives access to the sandbox. Its
 * digest identifies the rows of one sandbox without giving access.
 */
export function sessionDigest(sessionId: string): string {
  return createHash("sha256").update(sessionId).digest("hex").slice(0, SHOWN_CHARS);
}

const SESSION_ID = /^(?:[\w-]{12}\.)?[\w-]{32}$/;

/**
 * Whether the text has the form of a session id that the server generates. Other texts do not give access to a sandbox.
 */
export function isSessionId(text: string): boolean {
  return SESSION_ID.test(text);
}
