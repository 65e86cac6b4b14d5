/**
 * Parses an answer without validation: the server is of the same build as the page, and both use the types of the
 * contract.
 */
// oxlint-disable-next-line typescript/no-unnecessary-type-parameters
export function fromAnswer<T>(text: string): T {
  // oxlint-disable-next-line typescript/no-unsafe-return
  return JSON.parse(text);
}
