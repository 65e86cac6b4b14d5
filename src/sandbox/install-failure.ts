const NPM_LINE = /^npm (?:ERR!|error) ?/;
/** What npm says about itself, around the line that says what is wrong. */
const NPM_ASIDE =
  /^(?:$|(?:code|errno|syscall|path|dest|command|argv|cwd|signal|file) |A complete log|.*-debug-0\.log)/;

/** The line of a package manager's output that says what is wrong: of pip its last, of npm the first that is about the packages. */
export function installFailure(stderr: string): string | undefined {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const ofNpm = lines.filter((line) => NPM_LINE.test(line)).map((line) => line.replace(NPM_LINE, "").trim());
  const ofPip = lines.filter((line) => line.startsWith("ERROR:"));
  const code = ofNpm.find((line) => line.startsWith("code "));
  return ofNpm.find((line) => !NPM_ASIDE.test(line)) ?? code ?? ofPip.at(-1) ?? lines.at(-1);
}
