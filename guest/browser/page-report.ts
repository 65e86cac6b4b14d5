/** The report of the script in a page about one frame. */
export interface FrameReport {
  readonly title: string;
  /** The visible lines, in the order of the page. */
  readonly lines: readonly ReportLine[];
  /** For each ref the description of its element: `button "Sign in"`. */
  readonly elements: Readonly<Record<string, string>>;
  /** Texts of the page that are not visible. */
  readonly hidden: readonly string[];
  /** The first unused ref. */
  readonly nextRef: number;
  /** The page exceeds the limits of a report. */
  readonly isCut: boolean;
}

export interface ReportLine {
  readonly text: string;
  /** Refs in the text. */
  readonly refs: readonly number[];
  /** The ref of the frame whose lines follow this one. */
  readonly frame?: number;
}

/** The current description of an element, and its description in the snapshot. */
export interface Sighting {
  readonly was: string;
  readonly is: string;
  /** In the words of snapshots. */
  readonly label: string;
}

export interface Press extends Sighting {
  readonly isRefused: boolean;
}
