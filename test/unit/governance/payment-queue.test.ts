import { expect, test } from "vitest";
import { PaymentQueue } from "../../../src/governance/limits/redis/payment-queue.ts";

const SPEND = { key: "client", month: "2026-11", micros: 10 };

test("a batch whose answer was lost is asked about again at once by whoever must know", async () => {
  const asked: number[] = [];
  const paidIn: string[] = [];
  const queue = new PaymentQueue(async (seq) => {
    asked.push(seq);
    if (asked.length === 1) throw new Error("the connection is gone");
    return "first";
  });
  const paid = queue.pay([SPEND], async (epoch) => void paidIn.push(epoch));
  await expect(paid).rejects.toThrow("the connection is gone");
  await queue.written();
  expect({ asked, paidIn }).toEqual({ asked: [1, 1], paidIn: ["first"] });
  await queue.close();
});
