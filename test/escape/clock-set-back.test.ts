import { generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { SILENT_LOGGER } from "../../src/telemetry/logger.ts";
import { authWith, createClock, failureOf } from "../unit/auth/auth-fixture.ts";
import { startJwksServer } from "../unit/auth/jwks-server.ts";
import { counter, HandClock, lease, passed, settle, sqliteLab } from "../unit/governance/store/store-lab.ts";
import { ecdsa, forgeToken } from "./forge-token.ts";

/** The machine's clock is set back, by a guest of the same time server or by hand. */
const lab = sqliteLab();
const DAY_MS = 86_400_000;

describe("with the clock set back by a month", () => {
  test.each([
    ["while the server runs", false],
    ["before the server starts", true],
  ])("what is spent of a budget stays spent, %s", async (_when, isRestarted) => {
    const place = lab.newPlace();
    const clock = new HandClock("2026-11-02T12:00:00Z");
    const limited = counter({ budget: 100, day: 5 });
    const first = await lab.open({ place, clock });
    await settle(first, await lease(first, limited, { reserve: 90 }), 90);
    if (isRestarted) await first.close();
    clock.wall -= 30 * DAY_MS;
    const store = isRestarted ? await lab.open({ place, clock }) : first;
    await expect(lease(store, limited, { reserve: 20 })).rejects.toThrow("refused by budget");
    expect(await passed(store, counter({ day: 5 }), 10)).toBe(4);
    await store.close();
  });

  test("keys of the issuer are as old as they are, and are fetched again", async () => {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const jwks = await startJwksServer();
    jwks.serve({ one: publicKey });
    const clock = createClock();
    const steady = createClock(5000);
    const authenticator = await createAuthenticator({
      auth: authWith({ jwksUrl: jwks.url, audience: "owlclaw", issuer: "https://issuer.test" }),
      clock: clock.now,
      steadyClock: steady.now,
      logger: SILENT_LOGGER,
    });
    const payload = { sub: "ada", aud: "owlclaw", iss: "https://issuer.test", exp: clock.nowSeconds() + 86_400 };
    const bearer = `Bearer ${forgeToken({ header: { alg: "ES256", kid: "one" }, payload, signer: ecdsa(privateKey) })}`;
    expect(await authenticator.authenticate(bearer)).toMatchObject({ id: "ada" });
    clock.advanceSeconds(-30 * 86_400);
    jwks.serve({});
    steady.advanceSeconds(15 * 60);
    expect(await failureOf(() => authenticator.authenticate(bearer))).toMatchObject({
      facts: { reason: "token_key_unknown" },
    });
    expect(jwks.requests).toBe(2);
    authenticator.close();
    await jwks.close();
  });
});
