import { expect } from "vitest";
import type { AuthConfig } from "../../../src/auth/authenticator.ts";
import { OwlError } from "../../../src/errors/owl-error.ts";
import type { LogFields, Logger } from "../../../src/telemetry/logger.ts";

/** Auth is on; the rest is empty unless said otherwise. */
export function authWith(jwt: Partial<AuthConfig["jwt"]>): AuthConfig {
  return { enabled: true, jwt: { secret: "", publicKey: "", jwksUrl: "", audience: "", issuer: "", ...jwt } };
}

/** A clock that moves only when told. */
export function createClock(startMs = 1_800_000_000_000) {
  let nowMs = startMs;
  return {
    now: () => nowMs,
    nowSeconds: () => nowMs / 1000,
    advanceSeconds: (seconds: number) => {
      nowMs += seconds * 1000;
    },
  };
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields;
}

export function createRecordingLogger(): Logger & { readonly lines: LogLine[] } {
  const lines: LogLine[] = [];
  const at =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      lines.push({ level, message, fields });
    };
  const logger = {
    lines,
    debug: at("debug"),
    info: at("info"),
    warning: at("warning"),
    error: at("error"),
    shows: () => true,
    child: () => logger,
  };
  return logger;
}

/** Runs a call that must fail with an OwlError, at once or by promise, and gives the error back. */
export async function failureOf(call: () => unknown): Promise<OwlError> {
  try {
    await call();
  } catch (error) {
    expect(error).toBeInstanceOf(OwlError);
    if (error instanceof OwlError) return error;
  }
  throw new Error("the call succeeded");
}
