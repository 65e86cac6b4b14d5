const timeFormat = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const dateTimeFormat = new Intl.DateTimeFormat(undefined, {
  year: "numeric",
  month: "short",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const shortFormat = new Intl.DateTimeFormat(undefined, {
  month: "short",
  day: "2-digit",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
});
const dayFormat = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", timeZone: "UTC" });
const countFormat = new Intl.NumberFormat();
const moneyFormat = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const centsFormat = new Intl.NumberFormat(undefined, { minimumFractionDigits: 2, maximumFractionDigits: 4 });

export function timeOf(iso: string): string {
  return timeFormat.format(new Date(iso));
}

export function dateTimeOf(iso: string): string {
  return dateTimeFormat.format(new Date(iso));
}

/** Without the year, for long lists. */
export function shortTimeOf(iso: string): string {
  return shortFormat.format(new Date(iso));
}

/** `2026-11-03` in the local format. */
export function dayOf(day: string): string {
  return dayFormat.format(new Date(`${day.slice(0, 10)}T00:00:00Z`));
}

export function countOf(value: number): string {
  return countFormat.format(value);
}

/** Micro-units as units, without a currency: the operator defines what a unit is worth. */
export function moneyOf(micros: number): string {
  const units = micros / 1_000_000;
  return (Math.abs(units) < 0.1 ? centsFormat : moneyFormat).format(units);
}

const SIZES = ["B", "KB", "MB", "GB", "TB"];

export function bytesOf(bytes: number): string {
  let value = bytes;
  let step = 0;
  while (value >= 1000 && step < SIZES.length - 1) {
    value /= 1024;
    step += 1;
  }
  return `${step === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${SIZES[step] ?? ""}`;
}

export function durationOf(ms: number): string {
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1_000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = seconds / 60;
  if (minutes < 60) return `${Math.floor(minutes)} min`;
  const hours = minutes / 60;
  if (hours < 48) return `${Math.floor(hours)} h ${Math.floor(minutes % 60)} min`;
  return `${Math.floor(hours / 24)} days`;
}

/** Characters that a browser does not display, or that change the direction of text. */
const UNSEEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** Replaces characters that an operator could not see: what is approved must be what is shown. */
export function visibleText(text: string): string {
  return text.replaceAll(UNSEEN, "\u{fffd}");
}
