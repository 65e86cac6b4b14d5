import type { Frame, Request, Response } from "playwright-core";
import { Failure } from "../../failure.ts";
import { explainNavigation, explainProxyAnswer } from "./navigation-failure.ts";

/** A page that was asked for and did not come, or came as an answer about an error. */
export interface Mishap {
  readonly request: Request;
  readonly answer?: { readonly status: number; readonly phrase: string };
}

/** What was broken off, by a download or by the next page, did not go wrong. */
export function mishapOfRequest(request: Request): Mishap | undefined {
  return request.failure()?.errorText.includes("ERR_ABORTED") === true ? undefined : { request };
}

export function mishapOfResponse(response: Response): Mishap | undefined {
  const status = response.status();
  return status < 400 ? undefined : { request: response.request(), answer: { status, phrase: response.statusText() } };
}

/** The frame that asks for a page of its own; absent for other requests, and before its tab is known. */
export function navigatingFrame(request: Request): Frame | undefined {
  try {
    return request.isNavigationRequest() ? request.frame() : undefined;
  } catch {
    // A request of a page that is not there yet, or of a worker, has no frame.
    return undefined;
  }
}

/** In a sentence, with what to do next. */
export async function describeMishap({ request, answer }: Mishap, proxyPort: number | undefined): Promise<string> {
  const address = request.url().slice(0, 300);
  const failure =
    answer === undefined
      ? await explainNavigation(new Error(request.failure()?.errorText), { address, timeoutMs: 0, proxyPort })
      : explainProxyAnswer(answer.phrase, proxyPort);
  if (failure instanceof Failure) return `the page did not open: ${failure.message}; ${failure.data.hint}`;
  if (answer === undefined) return `the page did not open: ${address}`;
  const next = answer.status >= 500 ? "look at its log, or try again later" : "check the address";
  return `the server answered ${answer.status} for ${address}; ${next}; browser_snapshot shows what the page says`;
}
