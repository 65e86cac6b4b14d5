import type { LoginFacts, SessionAnswer } from "../../../src/dashboard/contract.ts";
import { get } from "./api.ts";

type Facts = LoginFacts & { readonly session?: SessionAnswer | null };

/** Asked where nobody has to be signed in: a refusal would stand in the browser's console as an error. */
export async function currentSession(): Promise<SessionAnswer | undefined> {
  const { session } = await get<Facts>("login");
  return session === undefined ? await get<SessionAnswer>("session") : (session ?? undefined);
}
