import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext } from "playwright-core";
import { Failure } from "../../failure.ts";

/** Everything that Chromium writes by itself is here: profile, caches, crash reports, downloads on their way. */
const BROWSER_FOLDER = "/tmp/.owlclaw-browser";

const LAUNCH_TIMEOUT_MS = 60_000;
const VIEWPORT = { width: 1280, height: 720 };
/** Each renderer is a process of 50 MiB and more; the smallest sandbox has 1 GiB. */
const MAX_RENDERERS = 4;

/**
 * The browser knows only the last such list, so that it repeats Playwright's. The last two are ours: pages of the browser's own
 * that nobody sees cost a process, and a new frame for each page of the same site costs a quarter of the time that it takes to open.
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

/** Playwright's again, and the network in the browser's own process: one process less to start, to feed and to ask. */
const FEATURES_ON = ["CDPScreenshotNewSurface", "SkipListAccountsWithoutGaiaCookies", "NetworkServiceInProcess2"];

export interface ChromiumOptions {
  readonly executable: string;
  /** Port of the forwarder to the egress proxy on the sandbox's loopback; absent: there is no network. */
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
      // The sandbox around it has no user namespaces left to give, and its isolation was proven at the server's start.
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

/** Playwright speaks to it over a pipe: there is no port that a page could find. */
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
 * Servers of the sandbox itself are reached directly, also by the addresses that stand for all of its own; everything else, other
 * loopback and link-local addresses too, by the proxy.
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
