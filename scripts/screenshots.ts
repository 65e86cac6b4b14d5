// Makes docs/images/dashboard-*.png from a real server with some life in it: npx tsx scripts/screenshots.ts
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { LivelyServer } from "./screenshots/lively-server.ts";

const FOLDER = join(import.meta.dirname, "../docs/images");
const CHROMIUM = process.env["OWLCLAW_CHROMIUM"] ?? "/usr/bin/chromium";

/** What is pictured: a name, an address and a text that is there when the view is complete. */
const VIEWS: readonly (readonly [name: string, path: string, text: string])[] = [
  ["now", "", "Calls in flight"],
  ["sandbox", "/sandboxes/{id}", "Output"],
  ["code", "/sandboxes/{id}/cells", "plt.show()"],
  ["browser", "/sandboxes/{id}/browser", "Checkout"],
  ["changes", "/sandboxes/{id}/changes", "files changed"],
  ["approvals", "/approvals", "wants to call"],
  ["ledger", "/ledger", "code_run"],
  ["call", "/ledger?tool=code_run&outcome=ok", "code_run"],
  ["spend", "/spend", "By client"],
  ["policy", "/policy?client=research-agent", "sees and may do"],
];

await mkdir(FOLDER, { recursive: true });
const server = await LivelyServer.start();
const browser = await chromium.launch({ executablePath: CHROMIUM });
try {
  for (const theme of ["light", "dark"] as const) await picture(browser, theme);
} finally {
  await browser.close();
  await server.stop();
}

async function picture(opened: Browser, theme: "light" | "dark"): Promise<void> {
  const context = await opened.newContext({ colorScheme: theme, viewport: { width: 1280, height: 820 } });
  const page = await context.newPage();
  await page.goto(`${server.origin}/dashboard`);
  await page.getByLabel("Token of an operator").fill(await server.token("anna", ["owlclaw:admin"]));
  await page.getByRole("button", { name: "Sign in" }).click();
  const id = await page
    .getByRole("row", { name: /research-agent/ })
    .getByRole("link", { name: /^owl-/ })
    .first()
    .innerText();
  for (const [name, path, text] of VIEWS) {
    await page.goto(`${server.origin}/dashboard${path.replace("{id}", id)}`);
    await page.getByText(text).first().waitFor();
    if (name === "sandbox") await stepIn(page);
    if (name === "call") await page.getByRole("table").getByRole("link").first().click();
    await settle(page);
    await page.screenshot({ path: join(FOLDER, `dashboard-${name}-${theme}.png`) });
    console.log(`dashboard-${name}-${theme}.png`);
  }
  await page.goto(`${server.origin}/dashboard/sandboxes/${id}`);
  await page.getByRole("button", { name: "Give back" }).click();
  await page.getByRole("button", { name: "Take over" }).waitFor();
  await context.close();
}

/** A shell of the operator's own, with something typed. */
async function stepIn(page: Page): Promise<void> {
  await page.getByRole("button", { name: "Take over" }).click();
  const shell = page.getByRole("group", { name: "Your shell in the sandbox" });
  await shell.click();
  await page.waitForTimeout(1000);
  await page.keyboard.type("clear; ls -l\nhead -3 deploy.yaml\n");
  await shell.getByText("replicas").waitFor();
}

/** Until nothing is loaded any more, and what came has been drawn. */
async function settle(page: Page): Promise<void> {
  await page.getByText("Live", { exact: true }).waitFor();
  await page.locator(".loading").first().waitFor({ state: "detached" });
  await page.waitForTimeout(600);
}
