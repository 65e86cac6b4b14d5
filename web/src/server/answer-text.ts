/**
 * The server is of the same build as this page, and the contract is the one description of what it says: its answers are taken
 * for what they are called there.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function fromAnswer<T>(text: string): T {
  // oxlint-disable-next-line typescript/no-unsafe-return
  return JSON.parse(text);
}
