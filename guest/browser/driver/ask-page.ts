import type { Frame } from "playwright-core";

/** Asks our own script in a frame, which runs in a world of its own: what it answers is not the page's word. */
export async function askPage<T>(
  frame: Frame,
  command: string,
  options?: { readonly timeout: number; readonly signal?: AbortSignal },
): Promise<T | undefined> {
  const json = await frame.locator(`owl=${command}`).textContent(options);
  // oxlint-disable-next-line typescript/consistent-type-assertions -- our own script wrote it; the host checks what comes of it
  return (JSON.parse(json ?? "null") as T | null) ?? undefined;
}
