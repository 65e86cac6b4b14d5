import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OwlError } from "../../../src/errors/owl-error.ts";
import {
  type Incoming,
  type JsonRpcMessage,
  parseJson,
  parseMessages,
  serializeMessage,
} from "../../../src/mcp/json-rpc.ts";

function parseOne(text: string): Incoming {
  const parsed = parseMessages(text);
  if (parsed.batch) throw new Error("not one message");
  return parsed.item;
}

function outcomeOf(text: string): "message" | "refused" | "something else" {
  try {
    parseMessages(text);
    return "message";
  } catch (error) {
    return error instanceof OwlError ? "refused" : "something else";
  }
}

function refusal(text: string): OwlError {
  try {
    parseMessages(text);
  } catch (error) {
    if (error instanceof OwlError) return error;
    throw error;
  }
  throw new Error("it was accepted");
}

describe("valid messages", () => {
  test("[004-R13.1] give the method and the parameters", () => {
    const item = parseOne('{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo"}}');
    expect(item).toEqual({
      kind: "request",
      message: { jsonrpc: "2.0", id: "a", method: "tools/call", params: { name: "echo" } },
    });
  });

  test.each([
    ["request", '{"jsonrpc":"2.0","id":0,"method":"ping"}'],
    ["request", '{"jsonrpc":"2.0","id":"","method":"ping"}'],
    ["notification", '{"jsonrpc":"2.0","method":"notifications/initialized"}'],
    ["response", '{"jsonrpc":"2.0","id":1,"result":{}}'],
    ["response", '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'],
    // Answering an error with an error could go on for ever.
    ["response", '{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}'],
  ])("are told apart: %s", (kind, text) => {
    expect(parseOne(text).kind).toBe(kind);
  });

  test("keep unknown members and names like __proto__ without touching prototypes", () => {
    const item = parseOne('{"jsonrpc":"2.0","id":1,"method":"m","params":{"__proto__":{"polluted":true}}}');
    expect(item.kind).toBe("request");
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});

describe("required fields", () => {
  test.each([
    ["7", "a message is a JSON object, not the number 7"],
    ["null", "not null"],
    ['{"id":1,"method":"m"}', '"jsonrpc" must be "2.0", not missing'],
    ['{"jsonrpc":2,"id":1,"method":"m"}', "not the number 2"],
    ['{"jsonrpc":"2.0","id":1}', 'needs "method"'],
    ['{"jsonrpc":"2.0"}', 'needs "method"'],
    ['{"jsonrpc":"2.0","id":1,"method":""}', '"method" must be a non-empty string'],
    ['{"jsonrpc":"2.0","id":null,"method":"m"}', '"id" must be a string or an integer, not null'],
    ['{"jsonrpc":"2.0","id":1.5,"method":"m"}', '"id" must be a string or an integer'],
    ['{"jsonrpc":"2.0","id":9007199254740993,"method":"m"}', '"id" must be a string or an integer'],
    ['{"jsonrpc":"2.0","id":true,"method":"m"}', '"id" must be'],
    ['{"jsonrpc":"2.0","id":1,"method":"m","params":[1]}', '"params" must be an object, not an array'],
    ['{"jsonrpc":"2.0","id":1,"method":"m","params":null}', '"params" must be an object, not null'],
    ['{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}', "either"],
    ['{"jsonrpc":"2.0","id":1,"result":7}', "either"],
  ])("[004-R13.3] are checked, and the message says what is wrong: %s", (text, reason) => {
    const item = parseOne(text);
    expect(item.kind).toBe("invalid");
    expect(item.kind === "invalid" && item.error.kind).toBe("invalid_request");
    expect(item.kind === "invalid" && item.error.message).toContain(reason);
  });

  test("an invalid request keeps its id where there is one", () => {
    expect(parseOne('{"jsonrpc":"1.0","id":7,"method":"m"}')).toMatchObject({ kind: "invalid", id: 7 });
    expect(parseOne('{"jsonrpc":"2.0","id":{},"method":"m"}')).toMatchObject({ kind: "invalid", id: null });
  });
});

describe("invalid JSON", () => {
  test.each([
    ["{", { position: 1, line: 1, column: 2 }],
    ["", { position: 0, line: 1, column: 1 }],
    ['{"a": 1,}', { position: 8, line: 1, column: 9 }],
    ["{\n  nope\n}", { position: 4, line: 2, column: 3 }],
    ['{"a": "\n"}', { position: 7, line: 1, column: 8 }],
    ['{"a": 01}', { position: 7, line: 1, column: 8 }],
    ['{"a": "unfinished', { position: 17, line: 1, column: 18 }],
    ["{} {}", { position: 3, line: 1, column: 4 }],
    ["NaN", { position: 0, line: 1, column: 1 }],
    ['{"a": tru}', { position: 9, line: 1, column: 10 }],
  ])("[004-R13.2] is refused with its position: %j", (text, facts) => {
    const error = refusal(text);
    expect(error.kind).toBe("parse_error");
    expect(error.facts).toEqual(facts);
    expect(error.message).toContain(`position ${facts.position} (line ${facts.line}, column ${facts.column})`);
  });

  test("says where for every way of breaking a message off", () => {
    const whole = '{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1,"two\\u00e9",null,true]}}';
    const ends = Array.from({ length: whole.length }, (_, end) => end);
    expect(ends.map((end) => refusal(whole.slice(0, end)).facts["position"])).toEqual(ends);
  });

  test("never quotes the text, which may hold secrets", () => {
    expect(refusal('{"password": "hunter2" oops}').message).not.toContain("hunter2");
  });

  test("nesting that could exhaust the stack is refused where it gets too deep", () => {
    const error = refusal("[".repeat(100_000));
    expect(error.kind).toBe("parse_error");
    expect(error.facts).toEqual({ position: 200, line: 1, column: 201 });
    expect(() => parseJson(`${"[".repeat(200)}${"]".repeat(200)}`)).not.toThrow();
  });

  test("brackets inside strings are not nesting", () => {
    expect(parseJson(JSON.stringify({ text: '[{"'.repeat(1000) }))).toEqual({ text: '[{"'.repeat(1000) });
  });
});

describe("batches", () => {
  test("[004-R13.4] are parsed item by item, good and bad side by side", () => {
    const parsed = parseMessages('[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","method":"b"},7]');
    expect(parsed.batch && parsed.items.map(({ kind }) => kind)).toEqual(["request", "notification", "invalid"]);
  });

  test("that are empty or too long are invalid requests", () => {
    expect(refusal("[]").kind).toBe("invalid_request");
    expect(refusal(`[${"1,".repeat(1000)}1]`).kind).toBe("invalid_request");
  });
});

const json = fc.jsonValue({ maxDepth: 4 });
const id = fc.oneof(fc.string(), fc.maxSafeInteger());
const members = fc.dictionary(fc.string(), json, { maxKeys: 5 });
const method = fc.string({ minLength: 1 });
const version = fc.constant("2.0" as const);

const message: fc.Arbitrary<JsonRpcMessage> = fc.oneof(
  fc.record({ jsonrpc: version, id, method, params: members }, { requiredKeys: ["jsonrpc", "id", "method"] }),
  fc.record({ jsonrpc: version, method, params: members }, { requiredKeys: ["jsonrpc", "method"] }),
  fc.record({ jsonrpc: version, id, result: members }),
  fc.record({
    jsonrpc: version,
    id: fc.oneof(id, fc.constant(null)),
    error: fc.record({ code: fc.integer(), message: fc.string(), data: json }, { requiredKeys: ["code", "message"] }),
  }),
);

describe("round trips", () => {
  test("[004-R13.5] parse, serialise, parse is identity for every valid message", () => {
    fc.assert(
      fc.property(message, (original) => {
        const first = parseOne(JSON.stringify(original));
        if (first.kind === "invalid") throw first.error;
        const second = parseOne(serializeMessage(first.message));
        expect(second).toEqual(first);
        expect(serializeMessage(first.message)).toBe(JSON.stringify(original));
      }),
      { numRuns: 1000 },
    );
  });

  test("[004-R13.5] and for every batch of them", () => {
    fc.assert(
      fc.property(fc.array(message, { minLength: 1, maxLength: 10 }), (originals) => {
        const first = parseMessages(JSON.stringify(originals));
        if (!first.batch) throw new Error("a batch became a message");
        const messages = first.items.map((item) => {
          if (item.kind === "invalid") throw item.error;
          return item.message;
        });
        expect(parseMessages(serializeMessage(messages))).toEqual(first);
      }),
    );
  });

  test("whatever text comes, the answer is a message or an OwlError, never anything else", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          message.map((value) => JSON.stringify(value).slice(1)),
        ),
        (text) => {
          expect(outcomeOf(text)).not.toBe("something else");
        },
      ),
      { numRuns: 1000 },
    );
  });

  test("no message is more than one line, whatever is in it", () => {
    fc.assert(
      fc.property(message, (original) => {
        expect(serializeMessage(original)).not.toMatch(/[\n\r]/);
      }),
    );
  });
});
