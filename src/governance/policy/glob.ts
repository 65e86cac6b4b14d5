/** A glob over names and URIs: `*` stands for any characters, `?` for one. Linear in the text, whatever the pattern. */
export function toMatcher(glob: string): (text: string) => boolean {
  if (glob === "*") return () => true;
  if (!isGlob(glob)) return (text) => text === glob;
  return (text) => matches(glob, text);
}

/** Whether it can stand for anything but itself. */
export function isGlob(text: string): boolean {
  return /[*?]/.test(text);
}

/** Greedy with one point to come back to: no pattern can make it explode, as a regular expression could. */
function matches(glob: string, text: string): boolean {
  let at = 0;
  let inGlob = 0;
  let star = -1;
  let resume = 0;
  while (at < text.length) {
    const expected = glob[inGlob];
    if (expected === "*") {
      star = inGlob;
      resume = at;
      inGlob += 1;
    } else if (expected === "?" || (expected !== undefined && expected === text[at])) {
      inGlob += 1;
      at += 1;
    } else if (star !== -1) {
      inGlob = star + 1;
      resume += 1;
      at = resume;
    } else {
      return false;
    }
  }
  while (glob[inGlob] === "*") inGlob += 1;
  return inGlob === glob.length;
}
