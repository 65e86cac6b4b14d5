/** Writes a text so that it can stand between two slashes of a URI. */
export type Spelling = (text: string) => string;

/** As RFC 3986 has it: what can stand there as it is, does. */
const normal: Spelling = (text) => encodeURI(text).replace(/[/?#]/g, encodeURIComponent);

/** As people write it: only what would mean something else is escaped. */
export const readable: Spelling = (text) => text.replace(/[%/?#]/g, encodeURIComponent);

/** As clients and people write one and the same URI; the first is the one that we use. */
export const SPELLINGS: readonly Spelling[] = [normal, readable, encodeURIComponent];
