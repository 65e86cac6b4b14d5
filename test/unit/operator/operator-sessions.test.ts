import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { OperatorSessions, OneTimeLinks, LoginLimiter } from "../../../src/operator/operator-sessions.ts";
import { isOwlError } from "../../../src/errors/owl-error.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const MINUTE = 60_000;
const ROOT = { id: "root", scopes: [], claims: {} };

describe("a session", () => {
  const sessions = (): OperatorSessions => new OperatorSessions({ idleMs: 30 * MINUTE, maxAgeMs: 8 * 60 * MINUTE });

  test("lives on by being used, and ends when it is not", () => {
    const all = sessions();
    const { key } = all.open(ROOT);
    for (let step = 0; step < 4; step += 1) {
      vi.advanceTimersByTime(29 * MINUTE);
      expect(all.find(key)?.operator.id).toBe("root");
    }
    vi.advanceTimersByTime(30 * MINUTE);
    expect(all.find(key)).toBeUndefined();
  });

  test("does not live on by what a page asks by itself", () => {
    const all = sessions();
    const { key } = all.open({ id: "root", scopes: [], claims: {} });
    for (let minutes = 0; minutes < 29; minutes += 1) {
      vi.advanceTimersByTime(MINUTE);
      expect(all.find(key, { isUse: false })?.operator.id).toBe("root");
    }
    vi.advanceTimersByTime(MINUTE);
    expect(all.find(key, { isUse: false })).toBeUndefined();
  });

  test("ends after its longest time, and with the token behind it, however busy it is", () => {
    const all = sessions();
    const { key } = all.open(ROOT);
    const short = all.open(ROOT, Date.now() + 45 * MINUTE);
    for (let minutes = 0; minutes < 44; minutes += 1) {
      vi.advanceTimersByTime(MINUTE);
      expect([all.find(short.key), all.find(key)]).not.toContain(undefined);
    }
    vi.advanceTimersByTime(MINUTE);
    expect(all.find(short.key)).toBeUndefined();
    for (let quarter = 0; quarter < 28; quarter += 1) {
      vi.advanceTimersByTime(15 * MINUTE);
      expect(all.find(key)).toBeDefined();
    }
    vi.advanceTimersByTime(15 * MINUTE);
    expect(all.find(key)).toBeUndefined();
  });

  test("tells its streams of its end without being asked, once", () => {
    const all = sessions();
    const { key, session } = all.open(ROOT);
    const ended = vi.fn<() => void>();
    session.onEnd(ended);
    vi.advanceTimersByTime(31 * MINUTE);
    all.end(key);
    expect(ended).toHaveBeenCalledTimes(1);
  });

  test("gives way to newer ones beyond two hundred", () => {
    const all = sessions();
    const first = all.open(ROOT);
    const keys = Array.from({ length: 200 }, () => all.open(ROOT).key);
    expect(all.find(first.key)).toBeUndefined();
    expect(keys.every((key) => all.find(key) !== undefined)).toBe(true);
  });
});

describe("a link", () => {
  test("is good once, and for ten minutes", () => {
    const links = new OneTimeLinks();
    const [used, late] = [links.create(), links.create()];
    expect([links.take(used), links.take(used), links.take("guess")]).toEqual([true, false, false]);
    vi.advanceTimersByTime(10 * MINUTE);
    expect(links.take(late)).toBe(false);
  });
});

describe("the brake", () => {
  function waitOf(brake: LoginLimiter, peer: string): unknown {
    try {
      brake.check(peer);
      return 0;
    } catch (error) {
      return isOwlError(error) ? error.facts["retry_after"] : error;
    }
  }

  test("doubles the wait with each failure up to a minute, for this address alone", () => {
    const brake = new LoginLimiter();
    const waits: unknown[] = [];
    for (let failure = 0; failure < 11; failure += 1) {
      brake.failed("a");
      waits.push(waitOf(brake, "a"));
    }
    expect(waits).toEqual([0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
    expect(waitOf(brake, "b")).toBe(0);
    vi.advanceTimersByTime(MINUTE);
    expect(waitOf(brake, "a")).toBe(0);
    brake.succeeded("a");
    brake.failed("a");
    expect(waitOf(brake, "a")).toBe(0);
  });
});
