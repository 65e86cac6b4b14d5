/** Set-up talks on stderr only: stdout belongs to whatever runs afterwards. @param {string} line */
export function announce(line) {
  process.stderr.write(`owlclaw: ${line}\n`);
}

/** A failure that the reader can act on; set-up prints its message without a stack. */
export class SetupError extends Error {}

export const mayInstall = !["1", "true", "yes"].includes(process.env["OWLCLAW_NO_INSTALL"] ?? "");
