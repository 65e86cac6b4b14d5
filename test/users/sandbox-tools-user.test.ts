import { afterAll, beforeAll, describe } from "vitest";
import { type Account, makeOrdinaryAccount } from "../e2e/sandbox-account.ts";
import { connect, makePlace } from "../e2e/sandbox-client.ts";
import { defineToolSuite } from "../e2e/sandbox-tool-suite.ts";

describe("for an ordinary user,", () => {
  let account: Account;
  beforeAll(() => {
    account = makeOrdinaryAccount();
  });
  afterAll(() => account.remove());

  const sandbox = { limits: "best-effort" };
  defineToolSuite(
    ["http"],
    () => sandbox,
    async (transport) => await connect(transport, makePlace(account), { sandbox }),
  );
});
