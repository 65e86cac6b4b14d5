import type { LoginFacts, SessionAnswer } from "../../../src/operator/contract.ts";
import { get } from "./api.ts";

/** Asked where nobody has to be signed in: a refusal would stand in the browser's console as an error. */
export async function currentSession(): Promise<SessionAnswer | undefined> {
  const { session } = await get<LoginFacts>("login");
  return session ?? undefined;
}
