/**
 * Where a text stops being JSON, and why. JavaScript engines word their errors differently, and some omit the position.
 */
export interface JsonFault {
  readonly position: number;
  readonly reason: string;
}

const LITERALS = ["true", "false", "null"];
const UNFINISHED_ESCAPE = /^\\(?:u[0-9a-fA-F]{0,3})?$/;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const STRING_PREFIX = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y;
const SPACE = /[ \t\r\n]*/y;

/** Finds the first fault of a text that is not JSON. The caller limits the nesting. */
export function findJsonFault(text: string): JsonFault {
  const scanner = new Scanner(text);
  try {
    scanner.value();
    scanner.end();
  } catch (fault) {
    if (fault instanceof Fault) return fault;
    throw fault;
  }
  return { position: text.length, reason: "the text is not valid JSON" };
}

class Fault extends Error implements JsonFault {
  readonly position: number;
  readonly reason: string;

  constructor(position: number, reason: string) {
    super(reason);
    this.position = position;
    this.reason = reason;
  }
}

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(): void {
    this.#take(SPACE);
    const next = this.#text[this.#at];
    if (next === "{") this.#list("}", () => this.#member());
    else if (next === "[") this.#list("]", () => this.value());
    else if (next === '"') this.#string();
    else if (!this.#literal() && !this.#take(NUMBER)) this.#fail("a value is expected");
    this.#take(SPACE);
  }

  end(): void {
    if (this.#at < this.#text.length) this.#fail("nothing may follow the value");
  }

  #list(close: string, item: () => void): void {
    this.#at += 1;
    this.#take(SPACE);
    if (this.#skip(close)) return;
    do item();
    while (this.#skip(","));
    if (!this.#skip(close)) this.#fail(`"," or "${close}" is expected`);
  }

  #member(): void {
    this.#take(SPACE);
    if (this.#text[this.#at] !== '"') this.#fail("a name in double quotes is expected");
    this.#string();
    this.#take(SPACE);
    if (!this.#skip(":")) this.#fail('":" is expected');
    this.value();
  }

  #literal(): boolean {
    const word = LITERALS.find((literal) => literal[0] === this.#text[this.#at]);
    for (const letter of word ?? "") if (!this.#skip(letter)) this.#fail(`"${word}" is expected`);
    return word !== undefined;
  }

  #string(): void {
    if (this.#take(STRING)) return;
    this.#take(STRING_PREFIX);
    if (UNFINISHED_ESCAPE.test(this.#text.slice(this.#at, this.#at + 6))) this.#at = this.#text.length;
    this.#fail(this.#text[this.#at] === "\\" ? "bad escape in a string" : "bad character in a string");
  }

  #take(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? "";
    this.#at += found.length;
    return found !== "";
  }

  #skip(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #fail(reason: string): never {
    throw new Fault(this.#at, this.#at >= this.#text.length ? "the text ends too early" : reason);
  }
}
