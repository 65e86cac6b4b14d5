import type { Terminal } from "../../../src/cli/terminal.ts";

export interface FakeTerminal extends Terminal {
  readonly written: { out: string; err: string };
}

export function fakeTerminal(facts: Partial<Terminal> = {}): FakeTerminal {
  const written = { out: "", err: "" };
  return {
    out: (text) => void (written.out += text),
    err: (text) => void (written.err += text),
    outIsTty: false,
    errIsTty: false,
    outColor: false,
    errColor: false,
    width: Number.POSITIVE_INFINITY,
    ...facts,
    written,
  };
}
