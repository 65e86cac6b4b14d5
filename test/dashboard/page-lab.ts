import type { Client } from "@modelcontextprotocol/client";
import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll } from "vitest";
import { mintToken } from "../../src/auth/mint-token.ts";
import { connectHttp, makePlace, type Place, Server, type Settings } from "../e2e/sandbox-client.ts";
import { freePort } from "../services/free-port.ts";

const SECRET = "a secret that is long enough for tests";
/** Far longer than any view takes, so that only what never comes fails. */
const SHOW_MS = Number(process.env["SHOW_MS"] ?? 20_000);
export const CHROMIUM = "/usr/bin/chromium";

/** Would say so if any of it were taken for markup, script or a template. */
export const HOSTILE = `"'><img src=x onerror="globalThis.owned=1"><script>globalThis.owned=1</script>`;

let browser: Promise<Browser> | undefined;
afterAll(async () => {
  await (await browser)?.close();
});

export function token(subject: string, scopes: readonly string[] = []): Promise<string> {
  return mintToken({ secret: SECRET, subject, scopes, expiresInSeconds: 900 });
}

/** A server with tokens and real sandboxes, on a port that it keeps when it is started again. */
export class DashboardServer {
  readonly place: Place = makePlace();
  readonly #settings: Settings;
  #server: Server | undefined;
  #port = 0;

  constructor(settings: Settings = {}) {
    this.#settings = settings;
  }

  get origin(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get pid(): number | undefined {
    return this.#server?.child.pid;
  }

  async start(): Promise<this> {
    this.#port ||= await freePort();
    const http = { host: "127.0.0.1", port: this.#port };
    const auth = { enabled: true, jwt: { secret: SECRET } };
    this.#server = new Server(this.place, { auth, ...this.#settings, http });
    await this.#server.url();
    return this;
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
  }

  async client(name: string, label?: string): Promise<Client> {
    const headers = {
      authorization: `Bearer ${await token(name)}`,
      ...(label === undefined ? {} : { "x-mcp-client-id": label }),
    };
    return await connectHttp(`${this.origin}/mcp`, headers);
  }
}

export interface OperatorOptions {
  readonly name?: string;
  readonly theme?: "light" | "dark";
  readonly viewport?: { readonly width: number; readonly height: number };
}

/** Somebody at the page. Whatever the browser complains about is kept, and wanted to be nothing. */
export class Operator {
  readonly page: Page;
  readonly origin: string;
  readonly name: string;
  readonly problems: string[];

  private constructor(page: Page, origin: string, name: string, problems: string[]) {
    this.page = page;
    this.origin = origin;
    this.name = name;
    this.problems = problems;
  }

  /** A browser of one's own that has not signed in. */
  static async arrive({ origin }: { readonly origin: string }, options: OperatorOptions = {}): Promise<Operator> {
    browser ??= chromium.launch({ executablePath: CHROMIUM });
    const { name = "anna", theme = "light", viewport = { width: 1280, height: 900 } } = options;
    const context = await (await browser).newContext({ colorScheme: theme, viewport, acceptDownloads: true });
    const page = await context.newPage();
    const problems: string[] = [];
    page.on("console", (message) => {
      if (["error", "warning"].includes(message.type())) problems.push(`${message.text()} at ${page.url()}`);
    });
    page.on("pageerror", (error) => problems.push(String(error.stack)));
    page.on("request", (request) => {
      const { origin: asked, protocol } = new URL(request.url());
      if (asked !== origin && protocol !== "data:" && protocol !== "blob:") problems.push(`asked ${request.url()}`);
    });
    return new Operator(page, origin, name, problems);
  }

  static async signIn(server: { readonly origin: string }, options: OperatorOptions = {}): Promise<Operator> {
    const operator = await Operator.arrive(server, options);
    await operator.open("");
    await operator.enterToken();
    return operator;
  }

  async enterToken(scopes: readonly string[] = ["owlclaw:admin"]): Promise<void> {
    await this.page.getByLabel("Token of an operator").fill(await token(this.name, scopes));
    await this.page.getByRole("button", { name: "Sign in" }).click();
    if (scopes.includes("owlclaw:admin")) await this.page.getByText("Live", { exact: true }).waitFor();
  }

  async open(path: string): Promise<void> {
    await this.page.goto(`${this.origin}/dashboard${path}`);
  }

  heading(): Promise<string> {
    return this.page.getByRole("heading", { level: 1 }).innerText();
  }

  /** Waits for what a view shows when it is complete. */
  async shows(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).first().waitFor({ timeout: SHOW_MS });
  }

  /** What keeps people from using the page as it is now; by all rules, or by some. */
  async obstacles(rules?: readonly string[]): Promise<readonly string[]> {
    await this.page.evaluate(axe.source);
    const options = { resultTypes: ["violations"], preload: false, ...(rules !== undefined && { runOnly: rules }) };
    const { violations } = await this.page.evaluate<{ violations: { id: string; nodes: { html: string }[] }[] }>(
      `axe.run(document, ${JSON.stringify(options)})`,
    );
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 160)}`));
  }

  /** What keeps people from using it in the dark theme, and in no other: only colours differ. */
  async obstaclesInTheDark(): Promise<readonly string[]> {
    await this.page.emulateMedia({ colorScheme: "dark" });
    const found = await this.obstacles(["color-contrast", "link-in-text-block"]);
    await this.page.emulateMedia({ colorScheme: "light" });
    return found.map((each) => `in the dark theme: ${each}`);
  }

  async isOwned(): Promise<boolean> {
    return await this.page.evaluate<boolean>(`globalThis.owned === 1 || document.querySelector("img[src=x]") !== null`);
  }

  /** @throws when the browser has complained about anything. */
  isContent(): void {
    if (this.problems.length > 0) throw new Error(this.problems.join("\n"));
  }

  async leave(): Promise<void> {
    await this.page.context().close();
    this.isContent();
  }
}
