import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { differenceOf } from "./compare-pictures.ts";
import { CHROMIUM, DashboardServer, token } from "../dashboard/page-lab.ts";
import { stillPicture } from "./still-page.ts";

/** Letters are drawn the same way on every machine. */
const BROWSER_ARGS = ["--font-render-hinting=none", "--disable-lcd-text", "--force-color-profile=srgb"];
const LONG_MS = 900_000;
const VIEWPORT = { width: 1000, height: 680 };

const governance: Readonly<Record<string, unknown>> = {
  approvalTimeoutSeconds: LONG_MS / 1000,
  defaults: { callsPerMinute: 100_000, concurrency: 1000 },
  tools: { file_write: { confirm: "operator" }, code_run: { cost: { fixed: 0.25 } } },
  clients: { ada: { monthlyBudget: 1 }, eve: { monthlyBudget: 0.2 } },
  rules: [
    { id: "no-rm", when: 'tool == "shell_exec" && args.command.contains("rm -rf")', effect: "deny", reason: "no" },
  ],
};

let server: DashboardServer;
let browser: Browser;
let sandbox = "";

beforeAll(async () => {
  server = await new DashboardServer({ governance }).start();
  browser = await chromium.launch({ executablePath: CHROMIUM, args: BROWSER_ARGS });
  const [ada, eve] = [await server.client("ada"), await server.client("eve")];
  sandbox = String((await call(ada, "sandbox_create")).structuredContent?.["session_id"]);
  const inSandbox = { session_id: sandbox };
  await call(ada, "code_run", { ...inSandbox, code: 'print("six times seven")\n6 * 7' });
  await call(ada, "code_run", { ...inSandbox, code: "1 / 0" });
  await call(ada, "shell_exec", { ...inSandbox, command: "printf 'port: 80\\nhost: a\\n' > app.yaml" });
  await call(ada, "shell_exec", { ...inSandbox, command: "rm -rf /" }).catch(() => undefined);
  await call(eve, "sandbox_list");
  const write = { ...inSandbox, path: "app.yaml", content: "port: 443\nhost: a\n" };
  // It waits until the server stops, however long the pictures take.
  void ada.callTool({ name: "file_write", arguments: write }, { timeout: LONG_MS }).catch(() => undefined);
});
// Each for itself: what one complains about must not leave the other behind.
afterAll(() => server.stop());
afterAll(() => browser.close());

/** Addresses of the main views, with what they show when they are complete. */
function views(id: string): readonly (readonly [name: string, path: string, text: string])[] {
  return [
    ["now", "", "Calls in flight"],
    ["terminal", `/sandboxes/${id}`, "Take over"],
    ["code", `/sandboxes/${id}/cells`, "ZeroDivisionError"],
    ["changes", `/sandboxes/${id}/changes`, "1 file changed"],
    ["approvals", "/approvals", "+ port: 443"],
    ["ledger", "/ledger?client=ada&kind=tool", "sandbox_create"],
    ["spend", "/spend?range=week", "expected at the end of the month"],
    ["policy", "/policy?client=ada", "sees and may do"],
    ["tool", "/tools/shell_exec", "Try it"],
  ];
}

async function signIn(page: Page): Promise<string> {
  await page.goto(`${server.origin}/dashboard`);
  await page.getByLabel("Token of an operator").fill(await token("anna", ["owlclaw:admin"]));
  await page.getByRole("button", { name: "Sign in" }).click();
  return await page.getByRole("link", { name: /^owl-/ }).first().innerText();
}

test.each(["light", "dark"] as const)("the main views look as they did, in the %s theme", async (theme) => {
  const options = { colorScheme: theme, viewport: VIEWPORT, timezoneId: "UTC", locale: "en-US" };
  const context = await browser.newContext(options);
  const [page, judge] = [await context.newPage(), await (await browser.newContext()).newPage()];
  const differences: string[] = [];
  const look = async (name: string): Promise<void> => {
    const difference = await differenceOf(judge, `${name}-${theme}`, await stillPicture(page));
    if (difference !== undefined) differences.push(difference);
  };
  await page.goto(`${server.origin}/dashboard`);
  await page.getByLabel("Token of an operator").waitFor();
  await look("login");
  const id = await signIn(page);
  for (const [name, path, text] of views(id)) {
    await page.goto(`${server.origin}/dashboard${path}`);
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByText(text).first().waitFor();
    await expect.poll(() => page.locator(".loading, .chart-space").count()).toBe(0);
    await look(name);
  }
  await context.close();
  expect(differences).toEqual([]);
});
