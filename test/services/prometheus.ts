import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "./free-port.ts";
import { privateFolder } from "./private-folder.ts";

/** A real Prometheus of one's own that scrapes one address every second. */
export interface PrometheusService {
  /** The series that answer a query. */
  query(expression: string): Promise<readonly Series[]>;
  stop(): Promise<void>;
}

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

const PROGRAM = "/usr/bin/prometheus";

/** Why tests with Prometheus cannot run here; nothing when they can. */
export const PROMETHEUS_MISSING: string | undefined = existsSync(PROGRAM)
  ? undefined
  : "the Debian package prometheus is not installed";

/** What `promtool check metrics` has to say; nothing when all is well. */
export function checkMetrics(text: string): string {
  const { status, stdout, stderr } = spawnSync("/usr/bin/promtool", ["check", "metrics"], { input: text });
  return status === 0 ? "" : `${String(stdout)}${String(stderr)}`;
}

export async function startPrometheus(target: URL): Promise<PrometheusService> {
  if (PROMETHEUS_MISSING !== undefined) throw new Error(PROMETHEUS_MISSING);
  const folder = privateFolder("prometheus");
  const port = await freePort();
  const config = join(folder.path, "prometheus.yml");
  const job = { job_name: "owlclaw", metrics_path: target.pathname, static_configs: [{ targets: [target.host] }] };
  // JSON is YAML, so the file needs no writer of its own.
  writeFileSync(config, JSON.stringify({ global: { scrape_interval: "1s" }, scrape_configs: [job] }));
  const args = [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder.path, "data")}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ];
  const server: ChildProcess = spawn(PROGRAM, args, { ...folder.user, stdio: "ignore" });
  const origin = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    if (server.exitCode === null && server.signalCode === null) {
      server.kill("SIGKILL");
      await once(server, "exit");
    }
    folder.remove();
  };
  await ready(origin, server);
  return {
    stop,
    async query(expression) {
      const response = await fetch(`${origin}/api/v1/query?query=${encodeURIComponent(expression)}`);
      const body = (await response.json()) as { status: string; error?: string; data?: { result: Series[] } };
      if (body.status !== "success") throw new Error(`${expression}: ${body.error ?? "no answer"}`);
      return body.data?.result ?? [];
    },
  };
}

async function ready(origin: string, server: ChildProcess): Promise<void> {
  for (;;) {
    const status = await fetch(`${origin}/-/ready`).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) return;
    if (server.exitCode !== null) throw new Error(`Prometheus ended with ${server.exitCode}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
