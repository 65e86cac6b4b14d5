/** The result of one check. */
export interface DoctorCheck {
  readonly category: "machine" | "configuration" | "data" | "programs" | "isolation" | "network" | "whole way";
  readonly name: string;
  /** `warning`: something is missing that not every user needs. */
  readonly status: "ok" | "warning" | "failed";
  readonly message: string;
  /** What to do. Absent when the status is `ok`. */
  readonly fix?: string;
}

/** A check that can be repeated, and an optional repair. */
export interface DoctorProbe {
  look(): Promise<readonly DoctorCheck[]>;
  /** Repairs without a confirmation what it safely can. Returns what it did, or undefined. */
  readonly repair?: () => Promise<string | undefined>;
}

type Named = Pick<DoctorCheck, "category" | "name">;

export function ok(named: Named, message: string): DoctorCheck {
  return { ...named, status: "ok", message };
}

export function failed(named: Named, message: string, fix: string): DoctorCheck {
  return { ...named, status: "failed", message, fix };
}

export function warning(named: Named, message: string, fix: string): DoctorCheck {
  return { ...named, status: "warning", message, fix };
}
