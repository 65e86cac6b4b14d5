/** `lost`: it is another memory than the server counts in. `stale`: this memory has forgotten a batch that it had run. */
const VERDICTS = ["ok", "day", "holder", "lost", "stale"] as const;

export interface Reply {
  readonly verdict: (typeof VERDICTS)[number];
  readonly wallMs: number;
  readonly steadyMs: number;
  readonly answers: readonly (readonly number[])[];
}

export function toReply(reply: unknown): Reply {
  const parts: readonly unknown[] = Array.isArray(reply) ? reply : [];
  const [said, wallMs, steadyMs, answers] = parts;
  const verdict = VERDICTS.find((each) => each === said);
  if (verdict === undefined) throw new TypeError("the store gave an answer that nobody can read");
  const list: readonly unknown[] = Array.isArray(answers) ? answers : [];
  return { verdict, wallMs: Number(wallMs), steadyMs: Number(steadyMs), answers: list.map(toNumbers) };
}

function toNumbers(value: unknown): readonly number[] {
  return Array.isArray(value) ? value.map(Number) : [];
}
