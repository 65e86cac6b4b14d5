import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Takeovers } from "../../../src/operator/takeovers.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const ANNA = { id: "anna", scopes: [], claims: {} };
const BOB = { id: "bob", scopes: [], claims: {} };
const MINUTE_MS = 60_000;

interface State {
  takenOverBy: string | undefined;
  isOnRecord: boolean;
  /** When what is written from now on will be. */
  writing: Promise<void>;
}

/** A desk with one sandbox, whose record can fail. */
function lab() {
  const acts: string[] = [];
  const state: State = { takenOverBy: undefined, isOnRecord: true, writing: Promise.resolve() };
  const cannot = (): Promise<never> => Promise.reject(new Error("not here"));
  const sandbox = {
    get takenOverBy() {
      return state.takenOverBy;
    },
    takeOver: (operator: string): void => void (state.takenOverBy = operator),
    giveBack: (): void => void (state.takenOverBy = undefined),
    runTerminal: cannot,
    request: cannot,
  };
  const act = async ({ id }: { readonly id: string }, _cell: string, { name }: { readonly name: string }) => {
    await state.writing;
    if (!state.isOnRecord) throw new Error("the disk is full");
    acts.push(`${id} ${name}`);
  };
  const takeovers = new Takeovers({ activity: { add: () => undefined }, get: () => sandbox, record: act, act });
  return { takeovers, state, acts };
}

test("a sandbox goes back to its owner when its operator has done nothing in it for half an hour", async () => {
  const { takeovers, state, acts } = lab();
  await takeovers.take(ANNA, "owl-1");
  await vi.advanceTimersByTimeAsync(29 * MINUTE_MS);
  expect(state.takenOverBy).toBe("anna");
  await vi.advanceTimersByTimeAsync(2 * MINUTE_MS);
  expect(state.takenOverBy).toBeUndefined();
  expect(acts).toEqual(["anna takeover", "anna giveback"]);
});

test("whoever works in its browser keeps it, and nobody else does", async () => {
  const { takeovers, state } = lab();
  await takeovers.take(ANNA, "owl-1");
  for (let times = 0; times < 4; times += 1) {
    await vi.advanceTimersByTimeAsync(20 * MINUTE_MS);
    expect(() => takeovers.renew(BOB, "owl-1")).toThrow("only who has taken the sandbox over");
    takeovers.renew(ANNA, "owl-1");
  }
  expect(state.takenOverBy).toBe("anna");
  await vi.advanceTimersByTimeAsync(31 * MINUTE_MS);
  expect(state.takenOverBy).toBeUndefined();
  expect(() => takeovers.renew(ANNA, "owl-1")).toThrow("only who has taken the sandbox over");
});

test("one that cannot be recorded does not begin, and one whose end cannot be recorded ends later", async () => {
  const { takeovers, state, acts } = lab();
  state.isOnRecord = false;
  await expect(takeovers.take(ANNA, "owl-1")).rejects.toThrow("the disk is full");
  expect([state.takenOverBy, vi.getTimerCount()]).toEqual([undefined, 0]);
  state.isOnRecord = true;
  await takeovers.take(BOB, "owl-1");
  state.isOnRecord = false;
  await vi.advanceTimersByTimeAsync(31 * MINUTE_MS);
  expect(state.takenOverBy).toBe("bob");
  state.isOnRecord = true;
  await vi.advanceTimersByTimeAsync(31 * MINUTE_MS);
  expect([state.takenOverBy, vi.getTimerCount()]).toEqual([undefined, 0]);
  expect(acts).toEqual(["bob takeover", "bob giveback"]);
});

test("whoever gives it back late does not take it from the next one who works in it", async () => {
  const { takeovers, state } = lab();
  await takeovers.take(ANNA, "owl-1");
  let write = (): void => undefined;
  const writing = state.writing;
  state.writing = new Promise((resolve) => (write = resolve));
  const late = takeovers.giveBack(BOB, "owl-1");
  state.writing = writing;
  await takeovers.giveBack(ANNA, "owl-1");
  await takeovers.take(ANNA, "owl-1");
  write();
  await late;
  expect(state.takenOverBy).toBe("anna");
});
