import { chmodSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connectHttp } from "../e2e/sandbox-client.ts";
import { openInside } from "../escape/sandbox-lab.ts";
import { describeUnless } from "../setup/mandatory.ts";
import { directOrder, startDirect } from "./direct-place.ts";
import { makeJobFolder } from "./job-folder.ts";
import { hostsOf, newSite } from "./keeper-order.ts";
import { urlOf } from "./kept-place.ts";

const reason = process.getuid?.() === 0 ? undefined : "the servers are started by root";

// The way of microVMs on a machine that boots them, with bubblewrap in their place: so that it works on the day it is taken.
describeUnless(reason, "servers on this machine itself", () => {
  test("start, are asked, and end; the names of their world are theirs alone", async () => {
    const place = mkdtempSync(join(tmpdir(), "owlclaw-msb-"));
    onTestFinished(() => rmSync(place, { recursive: true, force: true }));
    chmodSync(place, 0o755);
    const order = await directOrder({ canary: "canary-direct", site: newSite(), starts: "bubblewrap" }, place);
    await makeJobFolder(order.job, {
      scripts: { "keeper.mjs": join(import.meta.dirname, "keeper-job.ts") },
      texts: { hosts: hostsOf(order) },
      node: process.execPath,
    });
    const kept = await startDirect(order);
    onTestFinished(async () => await kept.stop());
    const inside = await openInside(await connectHttp(urlOf(kept, "bubblewrap")), { template: "node" });
    expect(await inside.sh("cat /workspace2/secret.txt; echo from inside > /workspace2/made.txt")).toBe(
      "canary-direct",
    );
    const read = await inside.python(`
import urllib.request, urllib.error
def get(url):
    try: return urllib.request.urlopen(url).read()
    except urllib.error.HTTPError as error: return error.read()
print(get("http://good.test/"), get("http://bad.test/"))`);
    expect(read).toMatch(/^b'hello from outside' b'egress refused: bad\.test:80 is not in network\.allow/);
    expect(readFileSync("/etc/hosts", "utf8")).not.toContain("good.test");
    expect(await kept.ask("facts")).toMatchObject({ machines: 0, written: "from inside\n" });
    await kept.stop();
    await expect(fetch(urlOf(kept, "bubblewrap"))).rejects.toThrow("fetch failed");
  });
});
