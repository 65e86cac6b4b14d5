import { defineHandler, definePrompt, defineResource, z } from "owlclaw";

const orders = new Map([
  ["A-1001", { id: "A-1001", customer: "Ada", total: 120, status: "paid" }],
  ["A-1002", { id: "A-1002", customer: "Grace", total: 75, status: "open" }],
]);

const order = z.object({ id: z.string(), customer: z.string(), total: z.number(), status: z.string() });

export const findOrder = defineHandler({
  name: "order_find",
  description: "Finds an order by its number. Reads only.",
  input: z.object({
    id: z
      .string()
      .regex(/^A-\d{4}$/)
      .describe("Order number, such as A-1001"),
  }),
  output: order,
  effect: { readOnly: true, openWorld: false },
  run({ id }) {
    const found = orders.get(id);
    if (found === undefined) throw new Error(`there is no order ${id}`);
    return found;
  },
});

export const refundOrder = defineHandler({
  name: "order_refund",
  description: "Refunds a paid order after asking the person at the client.",
  input: z.object({ id: z.string() }),
  effect: { destructive: true, idempotent: true, openWorld: false },
  async run({ id }, context) {
    const answer = await context.elicit({
      message: `Refund order ${id}?`,
      requestedSchema: { type: "object", properties: { sure: { type: "boolean" } }, required: ["sure"] },
    });
    if (answer.action !== "accept" || answer.content?.["sure"] !== true) return `order ${id} was not refunded`;
    return `order ${id} was refunded`;
  },
});

export const orderResource = defineResource({
  uri: "orders://{id}",
  name: "Order",
  mimeType: "application/json",
  complete: { id: (value) => [...orders.keys()].filter((id) => id.startsWith(value)) },
  read: (_uri, { id = "" }) => JSON.stringify(orders.get(id) ?? null),
});

export const complaint = definePrompt({
  name: "answer_complaint",
  description: "Drafts an answer to a complaint about an order.",
  arguments: z.object({ id: z.string().describe("Order number") }),
  run: ({ id }) => `Read orders://${id} and draft a short, friendly answer to the customer's complaint.`,
});
