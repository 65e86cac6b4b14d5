import type { LoginFacts, SessionAnswer } from "../../../src/operator/contract.ts";
import { get } from "./api.ts";

/** Uses `login`, which needs no session: the browser would log a refused request as an error. */
export async function currentSession(): Promise<SessionAnswer | undefined> {
  const { session } = await get<LoginFacts>("login");
  return session ?? undefined;
}
