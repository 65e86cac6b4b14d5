/** What the script inside a page tells the driver about one frame. */
export interface FrameReport {
  readonly title: string;
  /** What can be read, in the page's order. */
  readonly lines: readonly ReportLine[];
  /** Ref to what the element is: `button "Sign in"`. */
  readonly elements: Readonly<Record<string, string>>;
  /** Texts that are in the page and that nobody sees. */
  readonly hidden: readonly string[];
  /** The first ref that no element has. */
  readonly nextRef: number;
  /** The page has more than is ever reported. */
  readonly isCut: boolean;
}

export interface ReportLine {
  readonly text: string;
  /** Refs that stand in the text. */
  readonly refs: readonly number[];
  /** The ref of the frame whose lines belong after this one. */
  readonly frame?: number;
}

/** What an element is now, beside what it was in the snapshot. */
export interface Sighting {
  readonly was: string;
  readonly is: string;
  /** As snapshots say it. */
  readonly label: string;
}

export interface Press extends Sighting {
  readonly isRefused: boolean;
}
