import { defineHandler } from "owlclaw";

export const jsonSchema202012 = defineHandler({
  name: "json_schema_2020_12_tool",
  description: "Shows that a JSON Schema reaches clients as it was written",
  input: {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    $defs: {
      address: {
        $anchor: "addressDef",
        type: "object",
        properties: { street: { type: "string" }, city: { type: "string" } },
      },
    },
    properties: {
      name: { type: "string" },
      address: { $ref: "#/$defs/address" },
      contactMethod: { type: "string", enum: ["phone", "email"] },
      phone: { type: "string" },
      email: { type: "string" },
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
    // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
    then: { required: ["phone"] },
    else: { required: ["email"] },
    additionalProperties: false,
  },
  run: (input) => `JSON Schema 2020-12 tool called with: ${JSON.stringify(input)}`,
});

export const customHeader = defineHandler({
  name: "test_custom_header",
  description: "Has a parameter that clients repeat in a header, for routing",
  input: {
    type: "object",
    properties: { region: { type: "string", "x-mcp-header": "Region" } },
    required: ["region"],
  },
  run: ({ region }) => `Region: ${String(region)}`,
});
