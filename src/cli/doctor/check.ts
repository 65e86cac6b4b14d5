/** One thing that was looked at. */
export interface DoctorCheck {
  readonly category: "machine" | "configuration" | "data" | "programs" | "isolation" | "network" | "whole way";
  readonly name: string;
  /** `warning`: something is missing that not everybody needs. */
  readonly status: "ok" | "warning" | "failed";
  readonly message: string;
  /** What to do; absent when all is well. */
  readonly fix?: string;
}

/** A look that can be repeated, and what may repair what it finds. */
export interface DoctorProbe {
  look(): Promise<readonly DoctorCheck[]>;
  /** Repairs what can be repaired without asking; says what was done, or nothing. */
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
