/** What host and guest say to each other about the browser. */

/** Every request has its time; the driver ends what takes longer. */
interface Timed {
  readonly timeoutMs: number;
}

export interface BrowserGotoParams extends Timed {
  readonly url: string;
  readonly waitUntil: "load" | "domcontentloaded" | "networkidle" | "commit";
}

export interface BrowserClickParams extends Timed {
  /** `ref_N` of the last snapshot, or CSS. */
  readonly selector: string;
  readonly button: "left" | "right" | "middle";
  readonly clickCount: number;
  readonly acceptDialogs: boolean;
}

export interface BrowserTypeParams extends Timed {
  readonly selector: string;
  readonly text: string;
  readonly clear: boolean;
  readonly submit: boolean;
}

export interface BrowserSnapshotParams extends Timed {
  /** Characters that text and elements may have together, as they are in JSON. */
  readonly maxChars: number;
  /** From an earlier answer: goes on where that one ended. */
  readonly cursor?: string;
}

export interface BrowserScreenshotParams extends Timed {
  readonly path?: string;
  readonly fullPage: boolean;
  readonly selector?: string;
  /** The longest side of the picture that is sent back. */
  readonly maxSidePx: number;
}

export interface BrowserHistoryParams extends Timed {
  readonly action: "back" | "forward" | "reload";
}

export interface BrowserPressParams extends Timed {
  readonly key: string;
  readonly selector?: string;
}

export interface BrowserSelectParams extends Timed {
  readonly selector: string;
  readonly values: readonly string[];
}

export interface BrowserHoverParams extends Timed {
  readonly selector: string;
}

export interface BrowserScrollParams extends Timed {
  readonly to: "up" | "down" | "top" | "bottom";
  /** Scrolls this into view. */
  readonly selector?: string;
}

export interface BrowserWaitParams extends Timed {
  readonly text: string;
  readonly state: "visible" | "gone";
}

export interface BrowserEvaluateParams extends Timed {
  readonly expression: string;
  readonly maxChars: number;
}

export interface BrowserLogParams extends Timed {
  readonly kind: "console" | "requests";
  readonly maxEntries: number;
}

export interface BrowserTabsParams extends Timed {
  readonly action: "list" | "open" | "select" | "close";
  readonly tab?: number;
}

export interface BrowserPdfParams extends Timed {
  readonly path: string;
}

export interface BrowserUploadParams extends Timed {
  readonly selector: string;
  readonly paths: readonly string[];
}

/** For somebody who looks on: no browser is started for it. */
export type BrowserPictureParams = Timed;

export interface BrowserPictureResult {
  readonly isRunning: boolean;
  readonly url: string;
  readonly title: string;
  readonly width: number;
  readonly height: number;
  /** A JPEG in base64; empty when no browser runs. */
  readonly data: string;
}

/** What a person did at the picture. All fields are always there; which count depends on the kind. */
export interface BrowserInputParams extends Timed {
  readonly kind: "click" | "type" | "key" | "scroll";
  readonly x: number;
  readonly y: number;
  readonly text: string;
  readonly amount: number;
  readonly isUp: boolean;
}

export interface BrowserTab {
  readonly tab: number;
  readonly url: string;
  readonly title: string;
  readonly isCurrent: boolean;
}

/** What every answer says about the page, and what happened since the last one. */
export interface BrowserPage {
  readonly url: string;
  readonly title: string;
  /** Listed when there is more than one. */
  readonly tabs: readonly BrowserTab[];
  /** Sentences about what happened by itself: dialogs and their answers, downloads, new tabs, pages that did not open, restarts. */
  readonly events: readonly string[];
  /** Paths in the workspace. */
  readonly downloads: readonly string[];
}

export interface BrowserGotoResult extends BrowserPage {
  /** Absent for pages that no server answered for. */
  readonly status?: number;
}

export interface BrowserActResult extends BrowserPage {
  /** What was used, as in `button "Sign in"`. */
  readonly target?: string;
}

export interface BrowserSnapshotResult extends BrowserPage {
  readonly text: string;
  readonly elements: string;
  /** Absent when this is the end. */
  readonly cursor?: string;
  readonly totalChars: number;
}

export interface BrowserScreenshotResult extends BrowserPage {
  readonly path: string;
  readonly width: number;
  readonly height: number;
  readonly sizeBytes: number;
  readonly picture: { readonly mimeType: "image/png" | "image/jpeg"; readonly data: string };
}

export interface BrowserEvaluateResult extends BrowserPage {
  /** JSON, or text where the value has no such form. */
  readonly value: string;
  readonly isTruncated: boolean;
}

export interface BrowserLogResult extends BrowserPage {
  readonly entries: readonly string[];
  /** Older ones that are no longer kept. */
  readonly droppedEntries: number;
}

export interface BrowserPdfResult extends BrowserPage {
  readonly path: string;
  readonly sizeBytes: number;
}

export interface BrowserMethods {
  readonly "browser.goto": { readonly params: BrowserGotoParams; readonly result: BrowserGotoResult };
  readonly "browser.click": { readonly params: BrowserClickParams; readonly result: BrowserActResult };
  readonly "browser.type": { readonly params: BrowserTypeParams; readonly result: BrowserActResult };
  readonly "browser.snapshot": { readonly params: BrowserSnapshotParams; readonly result: BrowserSnapshotResult };
  readonly "browser.screenshot": { readonly params: BrowserScreenshotParams; readonly result: BrowserScreenshotResult };
  readonly "browser.history": { readonly params: BrowserHistoryParams; readonly result: BrowserGotoResult };
  readonly "browser.press": { readonly params: BrowserPressParams; readonly result: BrowserActResult };
  readonly "browser.select": { readonly params: BrowserSelectParams; readonly result: BrowserActResult };
  readonly "browser.hover": { readonly params: BrowserHoverParams; readonly result: BrowserActResult };
  readonly "browser.scroll": { readonly params: BrowserScrollParams; readonly result: BrowserActResult };
  readonly "browser.wait": { readonly params: BrowserWaitParams; readonly result: BrowserActResult };
  readonly "browser.evaluate": { readonly params: BrowserEvaluateParams; readonly result: BrowserEvaluateResult };
  readonly "browser.log": { readonly params: BrowserLogParams; readonly result: BrowserLogResult };
  readonly "browser.tabs": { readonly params: BrowserTabsParams; readonly result: BrowserActResult };
  readonly "browser.pdf": { readonly params: BrowserPdfParams; readonly result: BrowserPdfResult };
  readonly "browser.upload": { readonly params: BrowserUploadParams; readonly result: BrowserActResult };
  readonly "browser.picture": { readonly params: BrowserPictureParams; readonly result: BrowserPictureResult };
  readonly "browser.input": { readonly params: BrowserInputParams; readonly result: Record<string, never> };
}

export type BrowserFailureKind =
  | "bad_address"
  | "bad_certificate"
  | "bad_key"
  | "bad_selector"
  | "bad_value"
  | "browser_crashed"
  | "browser_hung"
  | "browser_missing"
  | "cancelled"
  | "element_covered"
  | "element_disabled"
  | "element_hidden"
  | "element_not_found"
  | "no_history"
  | "no_such_option"
  | "no_such_tab"
  | "page_crashed"
  | "page_hung"
  | "refused_address"
  | "refused_by_policy"
  | "script_error"
  | "several_elements"
  | "stale_ref"
  | "changed_element"
  | "timeout"
  | "unknown_cursor"
  | "unreachable"
  | "wrong_element";
