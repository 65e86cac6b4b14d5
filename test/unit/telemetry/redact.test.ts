import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseRedactRule } from "../../../src/config/redact-rule.ts";
import { toBoundedJson } from "../../../src/governance/ledger/bounded-json.ts";
import { createRedactor } from "../../../src/telemetry/redact.ts";

const redactor = createRedactor();
const BOUNDS = { maxChars: 2000, maxTextChars: 500 };
const kept = (value: unknown): unknown => JSON.parse(toBoundedJson(value, redactor, BOUNDS));

// Put together here, so that no scanner takes this file for a leak.
const join = (...parts: readonly string[]): string => parts.join("");
const SECRETS: Readonly<Record<string, string>> = {
  jwt: join("eyJhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiJhZGEifQ.", "c2lnbmF0dXJlLW9mLXRoZS10b2tlbg"),
  aws: join("AKIA", "IOSFODNN7EXAMPLE"),
  github: join("ghp_", "0123456789abcdefghijABCDEFGHIJ012345"),
  githubFine: join("github_pat_", "11AAAAAAA0abcdefghijkl_0123456789"),
  gitlab: join("glpat-", "0123456789abcdefABCD"),
  slack: join("xoxb-", "123456789012-abcdefGHIJKL"),
  openai: join("sk-", "proj-0123456789abcdefghij"),
  stripe: join("sk_live_", "0123456789abcdefghij"),
  google: join("AIza", "SyA0123456789abcdefghijklmnopqrstuv"),
  npm: join("npm_", "0123456789abcdefghij0123456789abcdef"),
};

describe("takes out of a text what looks like a secret", () => {
  test.each(Object.entries(SECRETS))("%s", (_, secret) => {
    for (const text of [secret, `before ${secret} after`, `x="${secret}"`, `a\n${secret}\nb`]) {
      expect(redactor.text(text)).not.toContain(secret);
      expect(redactor.text(text)).toContain("[redacted]");
    }
  });

  test.each([
    ["Authorization: Bearer abcdef0123456789", "abcdef0123456789"],
    ["curl -u ada:hunter22 http://x", "hunter22"],
    ["postgres://ada:hunter22@db/owl", "hunter22"],
    ["redis://:hunter22@cache:6379", "hunter22"],
    ["password = 'hunter22'", "hunter22"],
    ["AWS_SECRET_ACCESS_KEY=hunter22hunter22", "hunter22"],
    ['{"api_key":"hunter22"}', "hunter22"],
    ['{"passwords":"hunter22"}', "hunter22"],
    ['{\\"token\\":\\"hunter22\\"}', "hunter22"],
    ["https://x/?access_token=hunter22&b=1", "hunter22"],
    ["AccountKey=hunter22hunter22;Endpoint=x", "hunter22"],
    ["tool --password hunter22 --verbose", "hunter22"],
    ["tool --db-password='two hunter22'", "hunter22"],
    ["tool --api-key hunter22", "hunter22"],
    ['password="two hunter22"', "hunter22"],
    ["password='a;hunter22'", "hunter22"],
    ['password="a\\"hunter22"', "hunter22"],
    ['{\\"token\\":\\"two hunter22\\"}', "hunter22"],
    ['os.environ["DB_PASSWORD"] = "hunter22"', "hunter22"],
    ["os.environ['DB_PASSWORD']='hun;hunter22'", "hunter22"],
    ['os.environ.setdefault("DB_PASSWORD", "hunter22")', "hunter22"],
    ["mysql -u root -phunter22 shop", "hunter22"],
    ["mysqldump --host=db -p'two hunter22' shop", "hunter22"],
    ["sshpass -p hunter22 ssh ada@host", "hunter22"],
    ["docker login -u ada -p hunter22", "hunter22"],
    ["postgres://ada:p@hunter22@db/owl", "hunter22"],
    ["postgres://ada@example.com:p@hunter22@db/owl", "hunter22"],
  ])("%s", (text, secret) => {
    expect(redactor.text(text)).not.toContain(secret);
  });

  test("a private key, also one whose end was cut off", () => {
    const begin = join("-----BEGIN RSA PRIVATE", " KEY-----\n");
    const end = join("-----END RSA PRIVATE", " KEY-----");
    expect(redactor.text(`a ${begin}MIIEow\nabc\n${end} b`)).toBe("a [redacted] b");
    expect(redactor.text(`a ${begin}MIIEow\nabc`)).toBe("a [redacted]");
  });

  test.each([
    "print(6*7)",
    "max_tokens: 100",
    "see https://example.com/a?b=1",
    "ls -user x",
    "the secretary",
    "tokenize(x)",
    "mysql -p shop",
    "mysql -P 3306 -h db",
    "docker login --password-stdin",
    "http://localhost:8080/users/@me",
    "--max-tokens 100",
    '["token", "email"]',
  ])("%s stays as it is", (text) => expect(redactor.text(text)).toBe(text));
});

describe("takes out the values of keys whose name says secret", () => {
  test.each([
    "password",
    "DB_PASSWORD",
    "apiKey",
    "X-Api-Key",
    "Authorization",
    "set-cookie",
    "client_secret",
    "accessToken",
    "privateKey",
    "passwords",
    "cookies",
    "api_keys",
    "access_tokens",
    "secret_value",
    "SecretString",
    "password_hash",
    "password_confirmation",
  ])("%s", (name) =>
    expect(kept({ a: { [name]: { deep: "x" } }, [name]: 12345 })).toEqual({
      a: { [name]: "[redacted]" },
      [name]: "[redacted]",
    }),
  );

  test.each([
    ["name", "value"],
    ["key", "value"],
    ["Name", "Value"],
    ["header", "value"],
  ])("a pair of %s and %s", (name, value) => {
    const pairs = (secret: unknown): unknown => [
      { [name]: "DB_PASSWORD", [value]: secret, secret: "" },
      { [value]: "shown", [name]: "DB_HOST" },
    ];
    expect(kept(pairs("hunter22"))).toEqual(pairs("[redacted]"));
    expect(kept({ env: pairs({ deep: "hunter22" }) })).toEqual({ env: pairs("[redacted]") });
  });

  test.each([{ value: "x" }, { name: 7, value: "x" }, { name: "tokens", value: 7 }, { names: "password", value: "x" }])(
    "a value without the name of a secret stays: %j",
    (value) => expect(kept(value)).toEqual(value),
  );

  const HARMLESS = ["max_tokens", "tokens", "valid_tokens", "session_tokens", "tokenizer", "progressToken"];
  test.each([...HARMLESS, "author", "keyboard", "passenger", "secretary"])("not %s", (name) =>
    expect(kept({ [name]: "x" })).toEqual({ [name]: "x" }),
  );

  test("empty values tell nothing and stay", () => {
    expect(kept({ password: null, token: "", secret: false })).toEqual({ password: null, token: "", secret: false });
  });

  test("names and patterns of the operator", () => {
    const own = createRedactor(["employeeId", "/acct-\\d{6}/", "/HUSH/i"]);
    const bounded = (value: unknown): unknown => JSON.parse(toBoundedJson(value, own, BOUNDS));
    expect(bounded({ employee_id: "E1", text: "pay acct-123456, Hush now" })).toEqual({
      employee_id: "[redacted]",
      text: "pay [redacted], [redacted] now",
    });
  });
});

describe("keeps what is left small, and always JSON", () => {
  test("each text is cut for itself and says how long it was", () => {
    expect(kept({ a: "x".repeat(600), b: "y" })).toEqual({ a: `${"x".repeat(500)}… [600 characters]`, b: "y" });
  });

  test("a secret that the cut goes through does not stay in part", () => {
    const text = `${"x ".repeat(245)}${SECRETS["github"]}`;
    expect(JSON.stringify(kept({ text }))).not.toContain("ghp_0");
  });

  test("bytes and pictures are named, not kept", () => {
    expect(
      kept({ content: [{ type: "image", mimeType: "image/png", data: "A".repeat(5000) }], raw: new Uint8Array(7) }),
    ).toEqual({
      content: [{ type: "image", mimeType: "image/png", data: "[base64, 5000 characters]" }],
      raw: "[7 bytes]",
    });
  });

  test("cycles, getters that throw, proxies", () => {
    const cycle: Record<string, unknown> = {};
    cycle["self"] = cycle;
    expect(JSON.stringify(kept(cycle))).toContain("[too deep]");
    expect(
      kept({
        get bad() {
          throw new Error("no");
        },
      }),
    ).toBe("[unreadable]");
    expect(kept(JSON.parse('{"__proto__":{"x":1}}'))).toEqual(JSON.parse('{"__proto__":{"x":1}}'));
  });

  test("whatever comes in, the text parses and is bounded", () => {
    fc.assert(
      fc.property(
        fc.anything({ maxDepth: 6, withBigInt: true, withDate: true, withTypedArray: true, withNullPrototype: true }),
        (value) => {
          const text = toBoundedJson(value, redactor, BOUNDS);
          JSON.parse(text);
          expect(text.length).toBeLessThan(30_000);
        },
      ),
    );
    const huge = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`k${index}`, "z".repeat(1000)]));
    expect(toBoundedJson(huge, redactor, BOUNDS).length).toBeLessThan(4000);
    expect(toBoundedJson([huge, huge], redactor, BOUNDS).length).toBeLessThan(4000);
  });
});

describe("patterns of the operator cannot hang the server", () => {
  test.each([
    "/(a+)+$/",
    "/(a|a)*b/",
    "/(a*)*/",
    "/(\\w+\\s?)*x/",
    "/(x)\\1/",
    "/((a){2,}){3,}/",
    "/a*/",
    "/[/",
    "two words",
    "/(?:a?){30}a{30}/",
  ])("%s is refused", (rule) => expect(parseRedactRule(rule)).toBeUndefined());

  test.each(["/acct-\\d{6,12}/", "/(?:foo|bar)-\\d+/i", "/[(+*)]+x/", "employee_id", "/\\(a+\\)/"])(
    "%s is accepted",
    (rule) => expect(parseRedactRule(rule)).toBeDefined(),
  );

  test("our own patterns take a time that grows with the text, not with its square", () => {
    const evil = [
      "eyJ",
      "a.",
      "://a:",
      "-----BEGIN PRIVATE KEY",
      "bearer ",
      "password=",
      " -u a:",
      "_",
      '\\"',
      "ghp_a",
      ":",
      "https://",
    ];
    // The processor's time, as others may have it in the meantime, over as many rounds as that
    // clock needs: some kernels count it in whole ticks, and a short round is then 0.
    const timeOf = (length: number): number => {
      const texts = evil.map((part) => part.repeat(Math.ceil(length / part.length)));
      const before = process.cpuUsage();
      for (let rounds = 1; ; rounds += 1) {
        for (const text of texts) redactor.text(text);
        const { user, system } = process.cpuUsage(before);
        if (user + system >= 200_000) return (user + system) / rounds;
      }
    };
    timeOf(2000);
    // Sixteen times the text: a square would be 256 times the time.
    expect(timeOf(64_000) / timeOf(4000)).toBeLessThan(100);
  });
});
