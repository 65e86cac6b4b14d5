import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { dashboardAddresses } from "../../src/operator/control-client.ts";
import { call, makePlace, Server } from "../e2e/sandbox-client.ts";
import { PageOperator, PageStream } from "../escape/dashboard-lab.ts";
import { DashboardServer, Operator } from "./page-lab.ts";

describe("with tokens", () => {
  let server: DashboardServer;
  beforeAll(async () => {
    server = await new DashboardServer({ sandbox: { enabled: false } }).start();
  });
  afterAll(() => server.stop());

  test("an operator's token opens the page one asked for, and signing out ends it", async () => {
    const anna = await Operator.arrive(server);
    await anna.open("/ledger?client=ada");
    expect(await anna.heading()).toBe("Sign in");
    expect(await anna.obstacles()).toEqual([]);
    await anna.enterToken();
    await anna.shows("Ledger");
    expect(await anna.heading()).toBe("Ledger");
    expect(await anna.page.getByLabel("Client").inputValue()).toBe("ada");
    await expect.poll(() => anna.page.title()).toBe("Ledger · OwlClaw");
    await anna.page.getByRole("button", { name: "Sign out" }).click();
    await anna.shows("Token of an operator");
    await anna.page.reload();
    await anna.shows("Token of an operator");
    await anna.leave();
  });

  test("a token that is none, or a client's, is refused in words", async () => {
    const eve = await Operator.arrive(server, { name: "eve" });
    await eve.open("");
    await eve.page.getByLabel("Token of an operator").fill("no token at all");
    await eve.page.getByRole("button", { name: "Sign in" }).click();
    const alert = eve.page.getByRole("alert");
    await alert.waitFor();
    await eve.enterToken([]);
    await alert.getByText("owlclaw:admin").waitFor();
    expect(await eve.obstacles()).toEqual([]);
    // The browser itself writes down that both were refused; nothing else is wrong.
    expect(eve.problems.filter((problem) => !/status of 40[13]/.test(problem))).toEqual([]);
    eve.problems.length = 0;
    await eve.leave();
  });

  test("whoever is at the page when the server starts again signs in and is where they were", async () => {
    const anna = await Operator.signIn(server);
    await anna.page.getByRole("link", { name: "Ledger", exact: true }).click();
    await anna.shows(/^[\d,]+ rows?$|Nothing was called yet/);
    await server.stop();
    await anna.shows("Connection lost, trying again…");
    await server.start();
    await anna.shows("Token of an operator");
    await anna.enterToken();
    expect(await anna.heading()).toBe("Ledger");
    // The browser itself tells that the connection was lost, and that the old session is none any more.
    expect(anna.problems.filter((problem) => !/net::ERR_|status of (401|503)/.test(problem))).toEqual([]);
    anna.problems.length = 0;
    await anna.leave();
  });
});

describe("a page that nobody touches", () => {
  let server: DashboardServer;
  beforeAll(async () => {
    server = await new DashboardServer({
      sandbox: { enabled: false },
      // Shorter than the token lives, which ends it too.
      dashboard: { idleSeconds: 300 },
    }).start();
  });
  afterAll(() => server.stop());

  test("does not keep its session by asking for news, nor by its streams", async () => {
    const root = await PageOperator.byToken(server.origin);
    const endOf = async (headers: Record<string, string>): Promise<string> =>
      (await root.send("session", { headers })).json.expiresAt;
    const idle = { "x-owlclaw-idle": "1" };
    const end = await endOf(idle);
    await root.send("ledger?after=0", { headers: idle });
    (await PageStream.open(root, "live")).close();
    expect(await endOf(idle)).toBe(end);
    expect(await endOf({ accept: "text/event-stream" })).toBe(end);
    await expect.poll(() => endOf({})).not.toBe(end);
  });

  test("says so with what it asks, until somebody touches it", async () => {
    const anna = await Operator.signIn(server);
    await anna.page.clock.install();
    await anna.open("/ledger");
    await anna.shows("Live");
    const next = async (path: string): Promise<string | undefined> => {
      const request = await anna.page.waitForRequest((each) => new URL(each.url()).pathname.endsWith(path));
      return request.headers()["x-owlclaw-idle"];
    };
    const asked = next("/api/ledger");
    await anna.page.clock.runFor(3_500);
    expect(await asked).toBeUndefined();
    await anna.page.clock.fastForward(120_000);
    const askedAlone = next("/api/ledger");
    await anna.page.clock.runFor(3_500);
    expect(await askedAlone).toBe("1");
    const told = next("/api/session");
    await anna.page.keyboard.press("Shift");
    expect(await told).toBeUndefined();
    const askedAgain = next("/api/ledger");
    await anna.page.clock.runFor(3_500);
    expect(await askedAgain).toBeUndefined();
    await anna.leave();
  });
});

describe("without tokens", () => {
  test("a link that the server prints opens the page once", async () => {
    const place = makePlace();
    const server = new Server(place, { sandbox: { enabled: false } });
    const { origin } = new URL(await server.url());
    const [address] = await dashboardAddresses(place.dataFolder);
    const link = address?.link ?? "";
    const first = await Operator.arrive({ origin });
    await first.page.goto(link);
    await first.shows("Live");
    expect(new URL(first.page.url()).pathname).toBe("/dashboard");
    await first.leave();
    const second = await Operator.arrive({ origin });
    await second.open("");
    await second.shows("owlclaw mcp-server dashboard");
    expect(await second.obstacles()).toEqual([]);
    const refused = await second.page.goto(link);
    expect(refused?.status()).toBe(403);
    expect(second.problems.filter((problem) => !problem.includes("status of 403"))).toEqual([]);
    second.problems.length = 0;
    await second.leave();
    await server.stop();
  });
});

describe("in many tabs", () => {
  /** Tabs of this browser are never out of sight by themselves. */
  const SIGHT = `
    globalThis.away = false;
    Object.defineProperty(Document.prototype, "hidden", { get: () => globalThis.away });
    globalThis.look = (isAway) => { globalThis.away = isAway; document.dispatchEvent(new Event("visibilitychange")); };
  `;

  test("those out of sight leave the browser's few connections to the one in sight, and still tell what waits", async () => {
    const governance: Readonly<Record<string, unknown>> = { tools: { file_write: { confirm: "operator" } } };
    const server = await new DashboardServer({ governance }).start();
    const anna = await Operator.signIn(server);
    await anna.page.context().addInitScript(SIGHT);
    await anna.page.reload();
    await anna.shows("Live");
    const away = [anna.page];
    for (let count = 0; count < 6; count += 1) {
      await away.at(-1)?.evaluate("look(true)");
      const page = await anna.page.context().newPage();
      away.push(page);
      await page.goto(`${server.origin}/dashboard/spend`);
      await page.getByText("Live", { exact: true }).waitFor();
      await page.getByText("Nobody is near a limit.").waitFor();
    }
    const client = await server.client("ada");
    const asked = call(client, "file_write", { path: "a.txt", content: "x" }).then(() => "written", String);
    for (const page of away) await expect.poll(() => page.title()).toMatch(/^\(1\) /);
    await anna.page.evaluate("look(false)");
    await anna.page.getByRole("link", { name: "Approvals" }).click();
    await anna.page.getByRole("button", { name: "Deny" }).click();
    expect(await asked).toMatch(/said no/);
    for (const page of away) await expect.poll(() => page.title()).not.toMatch(/^\(/);
    await anna.leave();
    await server.stop();
  });
});
