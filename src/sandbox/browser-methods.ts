/** What the host says to a guest about its browser. */

interface Timed {
  readonly timeoutMs: number;
}

interface OnElement extends Timed {
  /** `ref_N` of the last snapshot, or CSS. */
  readonly selector: string;
}

export interface BrowserParams {
  readonly "browser.goto": Timed & {
    readonly url: string;
    readonly waitUntil: "load" | "domcontentloaded" | "networkidle" | "commit";
  };
  readonly "browser.click": OnElement & {
    readonly button: "left" | "right" | "middle";
    readonly clickCount: number;
    readonly acceptDialogs: boolean;
  };
  readonly "browser.type": OnElement & { readonly text: string; readonly clear: boolean; readonly submit: boolean };
  readonly "browser.snapshot": Timed & { readonly maxChars: number; readonly cursor?: string };
  readonly "browser.screenshot": Timed & {
    readonly path?: string;
    readonly fullPage: boolean;
    readonly selector?: string;
    readonly maxSidePx: number;
  };
  readonly "browser.history": Timed & { readonly action: "back" | "forward" | "reload" };
  readonly "browser.press": Timed & { readonly key: string; readonly selector?: string };
  readonly "browser.select": OnElement & { readonly values: readonly string[] };
  readonly "browser.hover": OnElement;
  readonly "browser.scroll": Timed & { readonly to: "up" | "down" | "top" | "bottom"; readonly selector?: string };
  readonly "browser.wait": Timed & { readonly text: string; readonly state: "visible" | "gone" };
  readonly "browser.evaluate": Timed & { readonly expression: string; readonly maxChars: number };
  readonly "browser.log": Timed & { readonly kind: "console" | "requests"; readonly maxEntries: number };
  readonly "browser.tabs": Timed & { readonly action: "list" | "open" | "select" | "close"; readonly tab?: number };
  readonly "browser.pdf": Timed & { readonly path: string };
  readonly "browser.upload": OnElement & { readonly paths: readonly string[] };
  /** For somebody who looks on: no browser is started for it. */
  readonly "browser.picture": Timed;
  readonly "browser.input": Timed & {
    readonly kind: "click" | "type" | "key" | "scroll";
    readonly x: number;
    readonly y: number;
    readonly text: string;
    readonly amount: number;
    readonly isUp: boolean;
  };
}

export type BrowserMethod = keyof BrowserParams;
