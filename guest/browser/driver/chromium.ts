import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext } from "playwright-core";
import { Failure } from "../../failure.ts";

/** All files that Chromium writes: profile, caches, crash reports, downloads in progress. */
const BROWSER_FOLDER = "/tmp/.owlclaw-browser";

const LAUNCH_TIMEOUT_MS = 60_000;
const VIEWPORT = { width: 1280, height: 720 };
/** Each renderer is a process of 50 MiB or more; the smallest sandbox has 1 GiB. */
const MAX_RENDERERS = 4;

/**
 * The browser uses only the last such list, so this repeats Playwright's. The last two entries are added: hidden internal pages
 * cost a process, and a new frame for each page of the same site costs a quarter of the time to open it.
 */
const FEATURES_OFF = [
  "AvoidUnnecessaryBeforeUnloadCheckSync",
  "DestroyProfileOnBrowserClose",
  "HttpsUpgrades",
  "PaintHolding",
  "HttpsFirstBalancedModeAutoEnable",
  "LensOverlay",
  "MediaRouter",
  "ThirdPartyStoragePartitioning",
  "AvoidCorsURLLoaderRestartOnRedirect",
  "OptimizationHints",
  "NetworkTimeServiceQuerying",
  "AimEnabled",
  "PreconnectToSearch",
  "PreloadTopChromeWebUI",
  "RenderDocument",
];

/** Repeats Playwright's list, and runs the network service in the browser process, which saves a process. */
const FEATURES_ON = ["CDPScreenshotNewSurface", "SkipListAccountsWithoutGaiaCookies", "NetworkServiceInProcess2"];

export interface ChromiumOptions {
  readonly executable: string;
  /** Port of the forwarder to the egress proxy on the loopback interface; absent: there is no network. */
  readonly proxyPort: number | undefined;
  readonly environment: Readonly<Record<string, string>>;
}

interface RunningChromium {
  readonly browser: Browser;
  readonly context: BrowserContext;
}

export async function startChromium(options: ChromiumOptions): Promise<RunningChromium> {
  rmSync(BROWSER_FOLDER, { recursive: true, force: true });
  for (const name of ["home", "tmp", "downloads"])
    mkdirSync(join(BROWSER_FOLDER, name), { recursive: true, mode: 0o700 });
  const { chromium, selectors } = await import("playwright-core");
  const script = readFileSync(join(import.meta.dirname, "page-engine.js"), "utf8");
  await selectors.register("owl", { content: script }, { contentScript: true });
  const home = join(BROWSER_FOLDER, "home");
  const browser = await chromium
    .launch({
      executablePath: options.executable,
      headless: true,
      // Chromium's own sandbox needs user namespaces, which are not available inside. The server's probe has tested the isolation.
      chromiumSandbox: false,
      args: chromiumArguments(options.proxyPort),
      env: {
        ...options.environment,
        HOME: home,
        XDG_CACHE_HOME: join(home, "cache"),
        XDG_CONFIG_HOME: join(home, "config"),
        TMPDIR: join(BROWSER_FOLDER, "tmp"),
      },
      downloadsPath: join(BROWSER_FOLDER, "downloads"),
      handleSIGINT: false,
      handleSIGTERM: false,
      handleSIGHUP: false,
      timeout: LAUNCH_TIMEOUT_MS,
    })
    .catch((error: unknown) => {
      throw cannotStart(error);
    });
  const context = await browser.newContext({ viewport: VIEWPORT, acceptDownloads: true, serviceWorkers: "allow" });
  return { browser, context };
}

/** Playwright uses a pipe: there is no debugging port that a page could reach. */
function chromiumArguments(proxyPort: number | undefined): string[] {
  return [
    "--disable-gpu",
    `--disable-features=${FEATURES_OFF.join(",")}`,
    `--enable-features=${FEATURES_ON.join(",")}`,
    "--disable-quic",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    `--renderer-process-limit=${MAX_RENDERERS}`,
    "--noerrdialogs",
    "--no-pings",
    ...(proxyPort === undefined ? [] : proxyArguments(proxyPort)),
  ];
}

/**
 * Servers inside the sandbox are reached directly, also by wildcard addresses; all other addresses, including other loopback and
 * link-local ones, by the proxy.
 */
function proxyArguments(port: number): string[] {
  const own = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]"];
  return [`--proxy-server=http://127.0.0.1:${port}`, `--proxy-bypass-list=<-loopback>;${own.join(";")}`];
}

function cannotStart(error: unknown): Failure {
  const said = String(error).replaceAll(/\s+/g, " ").slice(0, 600);
  return new Failure(
    "browser_missing",
    `the browser does not start: ${said}`,
    "destroy the sandbox and use another, or one of a larger flavor",
  );
}
