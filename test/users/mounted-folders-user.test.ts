import { afterAll, beforeAll } from "vitest";
import { type Account, makeOrdinaryAccount } from "../e2e/sandbox-account.ts";
import { defineMountedFolderSuite } from "../escape/mounted-folders-suite.ts";
import { bubblewrap } from "../escape/test-runtime.ts";

let account: Account;
beforeAll(() => {
  account = makeOrdinaryAccount();
});
afterAll(() => account.remove());

defineMountedFolderSuite(bubblewrap("user", () => account));
