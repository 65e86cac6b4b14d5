import { X509Certificate } from "node:crypto";
import { access, statfs } from "node:fs/promises";
import { join } from "node:path";
import { ANONYMOUS } from "../auth/principal.ts";
import type { Config } from "../config/schema.ts";
import { EVERYBODY } from "../governance/pauses.ts";
import type { WebhookAlerts } from "../telemetry/alerts.ts";
import type { Finding, HealthCheck } from "../telemetry/health.ts";
import type { Governance } from "../call/governed-work.ts";
import { GUEST_FOLDER } from "../sandbox/open-runtime.ts";
import type { SandboxHealth } from "../sandbox/sandbox-runtime.ts";

const MEGABYTE = 1024 * 1024;
/** Below this, recording soon fails. Below ten times this, the status is degraded. */
const MIN_FREE_BYTES = 100 * MEGABYTE;
const LOW_FREE_BYTES = 10 * MIN_FREE_BYTES;
const MIN_FREE_INODES = 1000;
const LOW_FREE_INODES = 10 * MIN_FREE_INODES;
const DAY_MS = 86_400_000;
const SOON_DAYS = 7;

/** The TLS certificate in use. */
export interface CertificateInUse {
  readonly cert: Buffer;
  /** The certificate files have changed, and the new pair cannot be used. */
  readonly isRefused: boolean;
}

export interface HealthParts {
  readonly config: Config;
  readonly governance: Pick<Governance, "governor" | "ledger"> | undefined;
  /** Absent when sandboxes are disabled. */
  readonly sandboxes: { readonly health: () => SandboxHealth } | undefined;
  /** The result of the last verification of the ledger. Absent when verification is disabled. */
  readonly ledgerCheck?: { readonly finding: Finding } | undefined;
  readonly alerts?: Pick<WebhookAlerts, "isInTrouble"> | undefined;
  /** Undefined until the TLS listener is open. */
  readonly certificate?: (() => CertificateInUse | undefined) | undefined;
}

/** All checks of `/health`. */
export function healthChecks(parts: HealthParts): readonly HealthCheck[] {
  const { config, governance, sandboxes, ledgerCheck, alerts, certificate } = parts;
  const checks: HealthCheck[] = [diskCheck(config.sandbox.root)];
  if (governance !== undefined)
    checks.push(
      storeCheck(governance),
      lossCheck(governance),
      limitsCheck(governance),
      pausedCheck(governance.governor),
    );
  if (ledgerCheck !== undefined)
    checks.push({ name: "ledger_verify", isVital: false, look: () => ledgerCheck.finding });
  if (alerts !== undefined && config.alerts.webhook !== "") checks.push(webhookCheck(alerts));
  if (sandboxes !== undefined) checks.push(runtimeCheck(sandboxes.health), guestCheck());
  if (certificate !== undefined && config.transport === "http" && config.http.tls.certFile !== "")
    checks.push(certificateCheck(certificate));
  return checks;
}

function storeCheck({ governor, ledger }: Pick<Governance, "governor" | "ledger">): HealthCheck {
  return {
    name: "store",
    isVital: !governor.failOpen,
    failure: "the ledger cannot be read",
    async look() {
      await ledger.reader.head();
      if (ledger.isHealthy) return ok("the ledger can be read and written");
      return down("the ledger could not be written at the last try; it is tried again every few seconds");
    },
  };
}

/** Calls are still served: refusing them would not bring the lost rows back. */
function lossCheck({ ledger }: Pick<Governance, "ledger">): HealthCheck {
  return {
    name: "ledger_loss",
    isVital: false,
    failure: "what the ledger has lost cannot be read",
    look: () =>
      ledger.hasOpenLoss
        ? { status: "degraded", message: "rows of the ledger were lost; owlclaw mcp-server ledger verify names them" }
        : ok("no row of the ledger is known to be lost"),
  };
}

/** The report is public, so it contains no client names. */
function pausedCheck({ pauses }: Governance["governor"]): HealthCheck {
  return {
    name: "paused",
    isVital: false,
    look: () => {
      const paused = pauses.list();
      if (paused.length === 0) return ok("no client is paused");
      const who = paused.some(({ client }) => client === EVERYBODY)
        ? "all clients are"
        : `${paused.length} clients are`;
      return { status: "degraded", message: `${who} paused by an operator; owlclaw mcp-server resume lets them go on` };
    },
  };
}

/** When the webhook is down, alerts are queued. The health report shows it, because the webhook cannot. */
function webhookCheck(alerts: Pick<WebhookAlerts, "isInTrouble">): HealthCheck {
  return {
    name: "webhook",
    isVital: false,
    look: () =>
      alerts.isInTrouble
        ? { status: "degraded", message: "the webhook takes no alerts; they wait until it does" }
        : ok("alerts are delivered"),
  };
}

function limitsCheck({ governor }: Pick<Governance, "governor">): HealthCheck {
  return {
    name: "limits",
    isVital: !governor.failOpen,
    failure: "calls cannot be counted",
    async look() {
      await governor.usage({ principal: ANONYMOUS, label: undefined });
      return ok("calls can be counted");
    },
  };
}

function runtimeCheck(health: () => SandboxHealth): HealthCheck {
  return {
    name: "runtime",
    isVital: true,
    look() {
      const found = health();
      if (found.status === "ok") return ok(`sandboxes run on ${found.runtime}`);
      if (found.status === "starting") return { status: "starting", message: "sandboxes are being started" };
      const { reason: detail, publicReason } = found;
      if (found.status === "degraded") return { status: "degraded", message: publicReason, detail };
      return { ...down(`no sandbox can start: ${publicReason}`), detail };
    },
  };
}

/** The guest program, which every sandbox starts with. */
function guestCheck(): HealthCheck {
  return {
    name: "guest",
    isVital: true,
    async look() {
      try {
        await access(join(GUEST_FOLDER, "guest.mjs"));
        return ok("the guest is there");
      } catch {
        return down("the guest is missing from the installation; install owlclaw again");
      }
    },
  };
}

function diskCheck(dataFolder: string): HealthCheck {
  return {
    name: "disk",
    isVital: true,
    failure: "the data folder cannot be looked at",
    async look() {
      const { bavail, bsize, files, ffree } = await statfs(dataFolder);
      const free = bavail * bsize;
      // Some file systems create inodes on demand and report no number of them.
      const inodes = files > 0 ? ffree : Number.POSITIVE_INFINITY;
      const room = `${Math.floor(free / MEGABYTE)} MiB are free in the data folder`;
      const message = inodes < LOW_FREE_INODES ? `${room}, and ${ffree} inodes` : room;
      if (free < MIN_FREE_BYTES || inodes < MIN_FREE_INODES)
        return down(`${message}; make room, or nothing can be recorded`);
      const isLow = free < LOW_FREE_BYTES || inodes < LOW_FREE_INODES;
      return isLow ? { status: "degraded", message: `${message}; make room soon` } : ok(message);
    },
  };
}

/**
 * The check reports an expired certificate and is not vital: clients reject the certificate, and the server cannot
 * change that.
 */
function certificateCheck(inUse: () => CertificateInUse | undefined): HealthCheck {
  return {
    name: "certificate",
    isVital: false,
    look() {
      const certificate = inUse();
      if (certificate === undefined) return { status: "starting", message: "nobody listens with it yet" };
      const { cert, isRefused } = certificate;
      const advice = isRefused ? REFUSED_PAIR : NEW_PAIR;
      const days = Math.floor((Date.parse(new X509Certificate(cert).validTo) - Date.now()) / DAY_MS);
      if (days < 0) return down(`the certificate has ended; ${advice}`);
      const message = `the certificate ends in ${days} days`;
      if (isRefused || days < SOON_DAYS) return { status: "degraded", message: `${message}; ${advice}` };
      return ok(message);
    },
  };
}

const NEW_PAIR = "put a new one in its place, it is read at once";
const REFUSED_PAIR = "the files in its place cannot be used: put a certificate there together with its own key";

function ok(message: string): Finding {
  return { status: "ok", message };
}

function down(message: string): Finding {
  return { status: "down", message };
}
