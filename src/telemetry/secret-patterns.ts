export interface SecretPattern {
  /**
   * Global, and linear: every repetition is bounded, or covers a class of characters that the following part cannot
   * match.
   */
  readonly pattern: RegExp;
  readonly replacement: string;
}

const GONE = "[redacted]";

/** Endings of the names of secrets. */
const NAMES =
  "(?:passw(?:or)?ds?|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|authorization|cookie|(?<=[a-z0-9]_)pwd)";
/**
 * The operator between a name and its value in code: =, ==, :=, =>, : and a type annotation before it, as in `password:
 * str = "x"`.
 */
const ASSIGNS = String.raw`(?:\s{0,4}:\s{0,4}[A-Za-z][\w.\[\]|]{0,64})?\s{0,4}(?:={1,3}>?|:=?)\s{0,4}`;
/** Optional prefixes of a string literal: f"x", rb'x', $'x'. */
const PREFIX = "(?:[rbfu]{1,2}|\\$)?";
/**
 * Adjacent quoted parts that belong to the same value: in a shell, and in YAML and SQL, where a doubled quotation mark
 * is an escape.
 */
const GOES_ON = String.raw`(?:"[^"]{0,256}"|'[^']{0,256}'){0,4}`;

/** Patterns of common secrets. Order matters: the wider ones come first. */
export const SECRET_PATTERNS: readonly SecretPattern[] = [
  // A private key is also redacted when its end is cut off.
  {
    pattern:
      /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|$)/g,
    replacement: GONE,
  },
  // JSON Web Tokens, also with the signature missing.
  { pattern: /\beyJ[\w-]{8,}\.[\w-]{4,}(?:\.[\w-]*)?/g, replacement: GONE },
  { pattern: /\b(?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA)[A-Z0-9]{12,20}\b/g, replacement: GONE },
  { pattern: /\bgh[pousr]_\w{16,255}/g, replacement: GONE },
  { pattern: /\bgithub_pat_\w{16,255}/g, replacement: GONE },
  { pattern: /\bglpat-[\w-]{16,64}/g, replacement: GONE },
  { pattern: /\bxox[abeoprs]-[\w-]{8,255}/g, replacement: GONE },
  { pattern: /\bxapp-[\w-]{8,255}/g, replacement: GONE },
  { pattern: /hooks\.slack\.com\/services\/[\w/-]{8,128}/g, replacement: `hooks.slack.com/services/${GONE}` },
  { pattern: /\bsk-[\w-]{16,255}/g, replacement: GONE },
  { pattern: /\b[sr]k_(?:live|test)_\w{10,255}/g, replacement: GONE },
  { pattern: /\bwhsec_[\w+/=]{16,128}/g, replacement: GONE },
  { pattern: /\bAIza[\w-]{30,45}/g, replacement: GONE },
  { pattern: /\bya29\.[\w-]{16,512}/g, replacement: GONE },
  { pattern: /\bnpm_\w{30,64}/g, replacement: GONE },
  { pattern: /\bpypi-\w[\w-]{30,255}/g, replacement: GONE },
  { pattern: /\bhf_[A-Za-z0-9]{20,64}/g, replacement: GONE },
  { pattern: /\bSG\.[\w-]{16,32}\.[\w-]{16,64}/g, replacement: GONE },
  { pattern: /\bdop_v1_[0-9a-f]{40,64}/g, replacement: GONE },
  { pattern: /\bage-secret-key-1[a-z0-9]{40,80}/gi, replacement: GONE },
  { pattern: /\b(bearer|basic)\s{1,4}[\w.~+/=-]{8,}/gi, replacement: `$1 ${GONE}` },
  {
    pattern:
      /(\bauthorization(?:\\?["'])?\s{0,4}[:=]\s{0,4}(?:\\?["'])?(?!bearer\b|basic\b)[\w-]{1,32}\s{1,4})[^\s"'\\]{4,}/gi,
    replacement: `$1${GONE}`,
  },
  // scheme://user:password@host
  { pattern: /(:\/\/[^\s:/"'<>]{0,128}:)[^\s/"'<>]{1,256}@/g, replacement: `$1${GONE}@` },
  { pattern: /\b(AccountKey|SharedAccessKey)=[^\s;"']{8,256}/g, replacement: `$1=${GONE}` },
  { pattern: /(\s(?:-u[ =]?|--user[ =])["']?[^\s:"']{1,64}:)[^\s"']{1,256}/g, replacement: `$1${GONE}` },
  // Ids that open sandboxes: session_id abc…, "session_id":"abc…", sandbox://abc…/path, sandbox://%61bc…/path
  { pattern: /(session_?id(?:\\?["'])?[\s=:]{1,4}(?:\\?["'])?)[\w.-]{8,128}/gi, replacement: `$1${GONE}` },
  { pattern: /(\bsandbox:\/\/)[\w.%-]{8,256}/gi, replacement: `$1${GONE}` },
  // mysql -uroot -phunter2: the password directly follows -p.
  {
    pattern:
      /(\b(?:mysql|mariadb)[\w-]{0,32}\b[^\n|;&]{0,256}?\s-p)(?:"[^"]{1,256}"?|'[^']{1,256}'?|[^\s"'=-][^\s"']{0,256})/g,
    replacement: `$1${GONE}`,
  },
  {
    pattern:
      /(\b(?:sshpass|redis-cli|(?:docker|podman) login)\b[^\n|;&]{0,256}?\s-[pa][ =]?)(?:"[^"]{1,256}"?|'[^']{1,256}'?|[^\s"'=-][^\s"']{0,256})/g,
    replacement: `$1${GONE}`,
  },
  // --password hunter2, --api-key "two words"
  {
    pattern: new RegExp(
      String.raw`((?:^|[\s"'(])--?[\w-]{0,40}(?:${NAMES}|pwd)(?:\s{1,4}|=))(?:"(?:\\[\s\S]|[^"\\]){1,1024}"?|'[^']{1,1024}'?|[^\s"'-][^\s"']{0,1024})${GOES_ON}`,
      "gi",
    ),
    replacement: `$1${GONE}`,
  },
  // password = "two words", token: 'a;b', environ["DB_PASSWORD"] = "x"
  {
    pattern: new RegExp(
      String.raw`(${NAMES}(?:\\?["'])?\]?${ASSIGNS}${PREFIX})("""|'''|["'\`])(?:\\[\s\S]|(?!\2)[^\\]){1,1024}(?:\2${GOES_ON})?`,
      "gi",
    ),
    replacement: `$1$2${GONE}$2`,
  },
  // The same in JSON inside a text: {\"token\":\"a;b\"}
  {
    pattern: new RegExp(
      String.raw`(${NAMES}(?:\\?["'])?\]?\s{0,4}(?:=>?|:)\s{0,4})(\\["'])(?:(?!\2)[\s\S]){1,1024}(?:\2)?`,
      "gi",
    ),
    replacement: `$1$2${GONE}$2`,
  },
  // setenv("DB_PASSWORD", "x")
  {
    pattern: new RegExp(
      String.raw`(\b(?:env|set|put|add)\w{0,16}\(\s{0,4}["'][\w.-]{0,64}?${NAMES}["']\s{0,4},\s{0,4})(["'])(?:\\[\s\S]|(?!\2)[^\\]){1,1024}\2?`,
      "gi",
    ),
    replacement: `$1$2${GONE}$2`,
  },
  // password = …, API_KEY: …, {"token":"…"} inside a text, ?access_token=…
  {
    pattern: new RegExp(String.raw`(${NAMES}(?:\\?["'])?\]?\s{0,4}(?:=>?|:)\s{0,4}(?:\\?["'])?)[^\s"'\\&;,]{4,}`, "gi"),
    replacement: `$1${GONE}`,
  },
];

/**
 * Matches every text that one of the patterns could match. It does not match every URI, because URIs of skills are in
 * every log line about a skill.
 */
export const SECRET_MARKS: RegExp =
  /eyJ|-BEGIN|A[KSRIGN][IOGP]A|gh[pousr]_|_pat_|glpat-|xox|xapp-|slack\.com|sk-|k_live_|k_test_|whsec_|AIza|ya29\.|npm_|pypi-|hf_|SG\.|dop_v1|age-s|bearer|basic|:\/\/[^\s:/"'<>]{0,128}:|mysql|mariadb|sshpass|redis-cli|login|pwd|sandbox:\/\/|Key=|-u|passw|passph|secret|token|api.?key|access.?key|private.?key|authoriz|cookie|session.?id/i;
