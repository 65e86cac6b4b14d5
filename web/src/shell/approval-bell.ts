import { effect, signal } from "@preact/signals";
import { approvalIds, now } from "../live/now-store.ts";
import { announce } from "../parts/announcer.tsx";
import { href, navigate } from "../routing/router.ts";

const KEY = "owlclaw-notify";

export const isNotifying = signal(localStorage.getItem(KEY) === "on" && canNotify());

function canNotify(): boolean {
  return "Notification" in globalThis && Notification.permission === "granted";
}

/** Returns whether notifications are on now: the browser may deny the permission. */
export async function switchNotifying(on: boolean): Promise<boolean> {
  if (on && "Notification" in globalThis && Notification.permission === "default")
    await Notification.requestPermission();
  isNotifying.value = on && canNotify();
  localStorage.setItem(KEY, isNotifying.value ? "on" : "off");
  return isNotifying.value;
}

/**
 * Notifies when a further call waits for approval, and closes the notification when none waits. The first state after
 * loading does not notify.
 */
export function followApprovals(): () => void {
  let last: ReadonlySet<string> | undefined;
  const stop = effect(() => {
    if (now.value === undefined) return;
    const ids = approvalIds.value;
    const known = last;
    if (known !== undefined && ids.some((id) => !known.has(id))) ring(ids.length);
    if (ids.length === 0) hush();
    last = new Set(ids);
  });
  return () => {
    stop();
    hush();
  };
}

let shown: Notification | undefined;

function ring(count: number): void {
  const text = count === 1 ? "A call waits for your decision." : `${count} calls wait for your decision.`;
  announce(text);
  // A user who sees the page needs no notification.
  const isSeen = !document.hidden && document.hasFocus();
  if (!isNotifying.peek() || isSeen) return;
  const notification = new Notification("OwlClaw", { body: text, tag: "owlclaw-approvals" });
  notification.onclick = () => {
    focus();
    navigate(href(["approvals"]));
    notification.close();
  };
  shown = notification;
}

function hush(): void {
  shown?.close();
  shown = undefined;
}
