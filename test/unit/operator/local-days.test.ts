import { describe, expect, test } from "vitest";
import { LocalDays } from "../../../src/operator/local-days.ts";

const HOUR_MS = 3_600_000;

describe("the part of a month that is over", () => {
  test.each([
    ["UTC", "2026-11-16T00:00:00Z", 15 / 30],
    ["UTC", "2028-02-15T12:00:00Z", 14.5 / 29],
    ["UTC", "2026-12-31T00:00:00Z", 30 / 31],
    // From minutes nothing can be told.
    ["UTC", "2026-11-01T00:01:00Z", 1 / 720],
    // In March a month there is an hour short, in November an hour long.
    ["America/New_York", "2026-03-11T04:00:00Z", 239 / 743],
    ["America/New_York", "2026-11-11T05:00:00Z", 241 / 721],
    // A new month there, while it is October in UTC; and an old one, while it is December.
    ["Pacific/Kiritimati", "2026-10-31T22:00:00Z", 12 / 720],
    ["America/Los_Angeles", "2026-12-01T07:00:00Z", 720 / 721],
  ])("in %s at %s", (timeZone, time, part) => {
    expect(new LocalDays(timeZone).monthPart(Date.parse(time))).toBeCloseTo(part, 9);
  });
});

test("days and ranges begin where the zone's days do", () => {
  const nowMs = Date.parse("2026-10-31T22:00:00Z");
  const there = new LocalDays("Pacific/Kiritimati");
  expect(there.dayAt(nowMs)).toBe("2026-11-01");
  expect(new Date(there.monthStartMs(nowMs)).toISOString()).toBe("2026-10-31T10:00:00.000Z");
  expect(new Date(there.startOfLastMs(7, nowMs)).toISOString()).toBe("2026-10-25T10:00:00.000Z");
  // Over the end of summer: the first of these days began by another clock.
  const berlin = new LocalDays("Europe/Berlin");
  expect(new Date(berlin.startOfLastMs(8, nowMs)).toISOString()).toBe("2026-10-23T22:00:00.000Z");
  expect(new Date(berlin.startOfLastMs(1, nowMs)).toISOString()).toBe("2026-10-30T23:00:00.000Z");
});

test("it is known when a clock was put forward or back, and by how much", () => {
  const [fromMs, toMs] = [Date.parse("2026-03-01T00:00:00Z"), Date.parse("2026-11-30T00:00:00Z")];
  expect(new LocalDays("UTC").shifts(fromMs, toMs)).toEqual([{ fromMs, shiftMs: 0 }]);
  expect(new LocalDays("Europe/Berlin").shifts(fromMs, toMs)).toEqual([
    { fromMs, shiftMs: HOUR_MS },
    { fromMs: Date.parse("2026-03-29T01:00:00Z"), shiftMs: 2 * HOUR_MS },
    { fromMs: Date.parse("2026-10-25T01:00:00Z"), shiftMs: HOUR_MS },
  ]);
  expect(new LocalDays("Australia/Lord_Howe").shifts(fromMs, toMs).map(({ shiftMs }) => shiftMs / HOUR_MS)).toEqual([
    11, 10.5, 11,
  ]);
  expect(new LocalDays("America/New_York").shifts(toMs, toMs)).toEqual([{ fromMs: toMs, shiftMs: -5 * HOUR_MS }]);
});
