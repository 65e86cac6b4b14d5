import type { JSX } from "preact";

export type Tone = "good" | "warn" | "bad" | "calm" | "busy";

const TONES: Readonly<Record<string, Tone>> = {
  allow: "good",
  allowed: "good",
  ok: "good",
  success: "good",
  ready: "good",
  idle: "good",
  running: "busy",
  busy: "busy",
  active: "busy",
  starting: "busy",
  confirm: "warn",
  depends: "warn",
  degraded: "warn",
  paused: "warn",
  approval: "warn",
  changed: "warn",
  deny: "bad",
  denied: "bad",
  refused: "bad",
  error: "bad",
  failed: "bad",
  timeout: "bad",
  cancelled: "warn",
  suspended: "warn",
  down: "bad",
  unavailable: "bad",
  removed: "bad",
  added: "good",
};

/** The word carries the meaning; the colour only supports it. */
export function Badge({ text, tone }: { readonly text: string; readonly tone?: Tone }): JSX.Element {
  return <span class={`badge ${tone ?? TONES[text] ?? "calm"}`}>{text}</span>;
}
