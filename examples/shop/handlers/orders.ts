/** The state that an order is in. */
export type OrderState = "open" | "paid" | "sent" | "returned" | "refunded";

export interface Order {
  /** Order number, such as A-1001. */
  id: string;
  customer: string;
  /** In euro. */
  total: number;
  state: OrderState;
}

const orders = new Map<string, Order>([
  ["A-1001", { id: "A-1001", customer: "Ada", total: 120, state: "sent" }],
  ["A-1002", { id: "A-1002", customer: "Grace", total: 75, state: "returned" }],
  ["A-1003", { id: "A-1003", customer: "Ada", total: 12.5, state: "open" }],
]);

/**
 * Finds an order by its number.
 *
 * @param id Order number, such as A-1001.
 * @readonly
 * @skill orders/order-status
 */
export function order_find(id: string): Order {
  return known(id);
}

/**
 * Lists orders, newest first.
 *
 * @param customer Only the orders of this customer.
 * @param state Only orders in this state.
 * @readonly
 */
export function order_list(customer?: string, state?: OrderState): Order[] {
  return [...orders.values()]
    .filter((order) => customer === undefined || order.customer === customer)
    .filter((order) => state === undefined || order.state === state)
    .toReversed();
}

/**
 * Pays the whole amount of a returned order back. Cannot be undone.
 *
 * @param id Order number, such as A-1002.
 * @param reason What the customer said.
 * @destructive
 * @skill orders/refund
 * @cost 1
 */
export async function order_refund(id: string, reason: string): Promise<{ id: string; refunded: number }> {
  const order = known(id);
  if (order.state !== "returned") throw new Error(`order ${id} is ${order.state}; only a returned order is refunded`);
  if (reason.trim() === "") throw new Error("a refund needs a reason");
  order.state = "refunded";
  return { id, refunded: order.total };
}

function known(id: string): Order {
  const order = orders.get(id);
  if (order === undefined) throw new Error(`there is no order ${id}; order_list shows those that exist`);
  return order;
}
