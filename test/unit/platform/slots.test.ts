import { describe, expect, test } from "vitest";
import { NumberedSlots, Slots } from "../../../src/platform/slots.ts";

const [a, b, c] = [{ name: "a" }, { name: "b" }, { name: "c" }];

describe("slots", () => {
  test("hold what was put in until it is taken out", () => {
    const slots = new Slots<object>();
    const [first, second] = [slots.add(a), slots.add(b)];
    slots.delete(first);
    expect([...slots]).toEqual([b]);
    expect(slots.size).toBe(1);
    expect([slots.get(first), slots.get(second)]).toEqual([undefined, b]);
  });

  test("take the next thing where the last one was", () => {
    const slots = new Slots<object>();
    const first = slots.add(a);
    slots.add(b);
    slots.delete(first);
    expect(slots.add(c)).toBe(first);
    expect([...slots]).toEqual([c, b]);
  });

  test("stay as small as what was in them at a time", () => {
    const slots = new Slots<object>();
    const highest = Math.max(
      ...Array.from({ length: 1000 }, () => {
        const pair = [slots.add(a), slots.add(b)];
        for (const slot of pair) slots.delete(slot);
        return Math.max(...pair);
      }),
    );
    expect(highest).toBe(1);
    expect(slots.size).toBe(0);
  });

  test("a slot that is empty can be emptied again: nobody gets it twice", () => {
    const slots = new Slots<object>();
    const slot = slots.add(a);
    slots.delete(slot);
    slots.delete(slot);
    expect(slots.add(a)).not.toBe(slots.add(b));
    expect(slots.size).toBe(2);
  });
});

describe("numbered slots", () => {
  test("find what they hold by its number, and give it back once", () => {
    const slots = new NumberedSlots<object>();
    slots.set(7, a);
    slots.set(9, b);
    expect([slots.get(7), slots.get(8), slots.size]).toEqual([a, undefined, 2]);
    expect([slots.delete(7), slots.delete(7), slots.size]).toEqual([a, undefined, 1]);
    slots.set(10, c);
    expect(slots.get(7)).toBeUndefined();
    expect(slots.entries()).toEqual([
      [9, b],
      [10, c],
    ]);
  });

  test("a number holds one thing", () => {
    const slots = new NumberedSlots<object>();
    slots.set(1, a);
    slots.set(1, b);
    expect([slots.get(1), slots.size]).toEqual([b, 1]);
  });

  test("what was found may be taken out on the way", () => {
    const slots = new NumberedSlots<object>();
    for (const [id, item] of [a, b, c].entries()) slots.set(id, item);
    for (const [id] of slots.entries()) slots.delete(id);
    expect(slots.size).toBe(0);
  });
});
