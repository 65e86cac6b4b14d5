/** The part of the contract about what calls cost, and who is near a limit. */
export interface SpendCount {
  readonly calls: number;
  readonly refused: number;
  readonly failed: number;
  readonly costMicros: number;
}

/** `GET spend?range=week|month|quarter`, or `?from&to`; without any of them: of the last 35 days. */
export interface Spend {
  /** Where days and months begin. */
  readonly timeZone: string;
  readonly from: string;
  /** Days there, such as `2026-11-15`: the one of `from`, and the one of this moment. */
  readonly firstDay: string;
  readonly today: string;
  readonly total: SpendCount;
  readonly clients: readonly (SpendCount & { readonly client: string })[];
  readonly tools: readonly (SpendCount & { readonly tool: string })[];
  readonly days: readonly (SpendCount & { readonly day: string })[];
  /** What this month has cost, and what it will have cost at its end, if it goes on like this. */
  readonly month: { readonly usedMicros: number; readonly forecastMicros: number };
  /** Of this month, for clients that have one. */
  readonly budgets: readonly BudgetState[];
  readonly nearLimits: readonly NearLimit[];
}

export interface BudgetState {
  readonly client: string;
  readonly usedMicros: number;
  readonly limitMicros: number;
  /** At the end of the month, if it goes on as in this month so far. */
  readonly forecastMicros: number;
}

export interface NearLimit {
  readonly client: string;
  readonly limit: "per_minute" | "per_day" | "concurrency" | "budget";
  readonly used: number;
  readonly most: number;
}
