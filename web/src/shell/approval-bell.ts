import { effect, signal } from "@preact/signals";
import { approvalCount, now } from "../live/now-store.ts";
import { announce } from "../parts/announcer.tsx";
import { href, navigate } from "../routing/router.ts";

const KEY = "owlclaw-notify";

export const isNotifying = signal(localStorage.getItem(KEY) === "on" && canNotify());

function canNotify(): boolean {
  return "Notification" in globalThis && Notification.permission === "granted";
}

export async function switchNotifying(on: boolean): Promise<void> {
  if (on && "Notification" in globalThis && Notification.permission === "default")
    await Notification.requestPermission();
  isNotifying.value = on && canNotify();
  localStorage.setItem(KEY, isNotifying.value ? "on" : "off");
}

/** Tells when more wait than before; the first look at a page is no news. */
export function followApprovals(): () => void {
  let last: number | undefined;
  return effect(() => {
    if (now.value === undefined) return;
    const count = approvalCount.value;
    if (last !== undefined && count > last) ring(count);
    last = count;
  });
}

function ring(count: number): void {
  const text = count === 1 ? "A call waits for your decision." : `${count} calls wait for your decision.`;
  announce(text);
  if (!isNotifying.peek() || !document.hidden) return;
  const notification = new Notification("OwlClaw", { body: text, tag: "owlclaw-approvals" });
  notification.onclick = () => {
    focus();
    navigate(href(["approvals"]));
    notification.close();
  };
}
