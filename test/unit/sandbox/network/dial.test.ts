import { expect, test } from "vitest";
import { parseHostsFile } from "../../../../src/sandbox/network/dial.ts";

test("the hosts file answers for its names in any case, all addresses of them, comments aside", () => {
  const text = "127.0.0.1 localhost\n::1\tlocalhost # too\n10.0.0.5 DB db.internal\n# 10.0.0.6 db\nnonsense db\n";
  expect(parseHostsFile(text, "localhost")).toEqual(["127.0.0.1", "::1"]);
  expect(parseHostsFile(text, "db")).toEqual(["10.0.0.5"]);
  expect(parseHostsFile(text, "absent")).toEqual([]);
});
