import fc from "fast-check";

type Json = unknown;

const ATOMS: readonly Json[] = [
  "",
  "a",
  "b",
  "x",
  "on",
  "circle",
  "square",
  "a-1",
  "v1",
  "ABC",
  "a@b",
  0,
  1,
  2,
  -3,
  2.5,
  42,
  true,
  false,
  null,
  [],
  {},
  [1],
  ["a"],
  { a: "x" },
  { a: 1 },
  { x: 1, y: 2 },
];
const KEYS = ["a", "b", "x", "y", "id", "name", "kind", "value", "next", "extra", "x-a", "op"];

/** Values near the samples: some fit the type, some are off by one field. */
export function mutants(samples: readonly Json[]): fc.Arbitrary<Json> {
  const step = fc.record({
    at: fc.nat(1000),
    how: fc.constantFrom("replace", "remove", "add", "repeat", "cut"),
    atom: fc.constantFrom(...ATOMS, ...samples),
    key: fc.constantFrom(...KEYS),
  });
  const start = fc.oneof(
    { weight: 9, arbitrary: fc.constantFrom(...samples) },
    { weight: 1, arbitrary: fc.constantFrom(...ATOMS) },
  );
  return fc
    .tuple(start, fc.array(step, { maxLength: 3 }))
    .map(([value, steps]) => steps.reduce<Json>((current, next) => mutate(current, next), value));
}

interface Step {
  readonly at: number;
  readonly how: "replace" | "remove" | "add" | "repeat" | "cut";
  readonly atom: Json;
  readonly key: string;
}

function mutate(value: Json, step: Step): Json {
  const copy: { root: Json } = { root: structuredClone(value) };
  const holders = holdersOf(copy, "root");
  const chosen = holders[step.at % holders.length];
  if (chosen === undefined) return value;
  const [holder, key] = chosen;
  holder[key] = changed(holder[key], step);
  return copy.root;
}

type Holder = Record<string, Json>;

/** Every place in a value, as the thing that holds it and the key. */
function holdersOf(holder: Holder, key: string): [Holder, string][] {
  const value = holder[key];
  const below =
    typeof value === "object" && value !== null
      ? Object.keys(value).flatMap((name) => holdersOf(value as Holder, name))
      : [];
  return [[holder, key], ...below];
}

function changed(value: Json, { how, atom, key, at }: Step): Json {
  if (Array.isArray(value)) {
    if (how === "add") return [...value, structuredClone(atom)];
    if (how === "repeat") return [...value, ...value];
    if (how === "cut" || how === "remove") return value.slice(0, -1);
  } else if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value);
    if (how === "add") return { ...value, [key]: structuredClone(atom) };
    if (how === "remove" || how === "cut")
      return Object.fromEntries(entries.filter((_, i) => i !== at % entries.length));
  }
  return structuredClone(atom);
}
