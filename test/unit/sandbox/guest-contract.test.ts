import { describe, expectTypeOf, test } from "vitest";
import type { GuestFailure, GuestMethods, OutputNotification } from "../../../guest/rpc.ts";
import { GUEST_FAILURE_CODE, OUTPUT_NOTIFICATION } from "../../../guest/rpc.ts";
import {
  FAILURE_CODE,
  type GuestOutput,
  type GuestParams,
  type GuestResult,
  OUTPUT_METHOD,
} from "../../../src/sandbox/guest-methods.ts";
import { failureSchema, type resultSchemas } from "../../../src/sandbox/guest-schemas.ts";
import { expect } from "vitest";

type Params = { readonly [M in keyof GuestMethods]: GuestMethods[M]["params"] };

/** Every answer that the guest may give is one that the host accepts. */
type Accepted = {
  readonly [M in keyof GuestMethods]: GuestMethods[M]["result"] extends DeepReadonly<GuestResult<M>> ? true : M;
};
type DeepReadonly<T> = T extends object ? { readonly [K in keyof T]: DeepReadonly<T[K]> } : T;

/** The names in what a guest may say that the host does not know: it would end the sandbox for them. */
type Unknown<Said, Known> = Said extends readonly (infer S)[]
  ? Known extends readonly (infer K)[]
    ? Unknown<S, K>
    : never
  : Said extends object
    ? Said extends unknown
      ? Exclude<KeysOf<Said>, KeysOf<Known>> | { [K in KeysOf<Said>]: Unknown<Of<Said, K>, Of<Known, K>> }[KeysOf<Said>]
      : never
    : never;
type KeysOf<T> = T extends object ? keyof T : never;
type Of<T, K> = T extends object ? (K extends keyof T ? NonNullable<T[K]> : never) : never;
type AllUnknown = { [M in keyof GuestMethods]: Unknown<GuestMethods[M]["result"], GuestResult<M>> }[keyof GuestMethods];

describe("host and guest agree", () => {
  test("on what the host sends", () => {
    expectTypeOf<GuestParams>().toExtend<Params>();
    expectTypeOf<Params>().toExtend<GuestParams>();
  });

  test("on what the guest answers", () => {
    expectTypeOf<Accepted>().toEqualTypeOf<{ readonly [M in keyof GuestMethods]: true }>();
    expectTypeOf<AllUnknown>().toEqualTypeOf<never>();
    expectTypeOf<OutputNotification>().toExtend<GuestOutput>();
  });

  test("on names and codes", () => {
    expect(FAILURE_CODE).toBe(GUEST_FAILURE_CODE);
    expect(OUTPUT_METHOD).toBe(OUTPUT_NOTIFICATION);
    const failure: GuestFailure = { kind: "not_found", message: "m", hint: "h" };
    expect(failureSchema.parse(failure)).toEqual(failure);
    expectTypeOf<keyof typeof resultSchemas>().toEqualTypeOf<keyof GuestMethods>();
  });
});
