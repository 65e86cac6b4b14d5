/** `GET sandboxes/:id/activity`, the data of each event `activity`: one thing that happened in a sandbox, in the order of `seq`. All texts are the sandbox's own: nothing in them is trusted. */
export interface Activity {
  readonly seq: number;
  readonly time: string;
  readonly kind: ActivityKind;
  /** The call, as in `CallNow.id`, and its tool. */
  readonly call?: string;
  readonly tool?: string;
  /** `shell` and `code`: a piece of what was printed; `terminal`: what the operator's shell printed. */
  readonly stream?: "stdout" | "stderr";
  readonly text?: string;
  readonly cell?: CodeCell;
  readonly network?: NetworkAttempt;
  /** The operator who did it, or the principal. */
  readonly by?: string;
}

export type ActivityKind = "shell" | "code" | "file" | "browser" | "network" | "terminal" | "state";

/** A piece of code that was run: first without, then with what came of it, under the same `call`. */
export interface CodeCell {
  readonly language: string;
  readonly code: string;
  readonly result?: string;
  readonly error?: string;
  readonly images?: readonly { readonly mime: string; readonly data: string }[];
  /** How many pictures there were beside these, for which there was no room any more. */
  readonly imagesGone?: number;
}

export interface NetworkAttempt {
  readonly host: string;
  readonly port: number;
  readonly decision: "allow" | "deny";
  readonly rule: string;
}
