import { get } from "node:http";
import { get as getSecurely } from "node:https";
import { createServer } from "node:net";
import { json } from "node:stream/consumers";
import * as z from "zod";
import type { Config } from "../../config/schema.ts";
import { isServed } from "../../operator/control-client.ts";
import { type DoctorCheck, type DoctorProbe, failed, ok, warning } from "./check.ts";

const NAMED = { category: "network", name: "port" } as const;
const OTHER_PORT = "stop the other program, or choose another port with --port";
const ANSWER_TIMEOUT_MS = 5000;
/** A server that listens on all addresses is requested on the loopback address. */
const ASKED_AT: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "::": "::1" };

const liveSchema = z.object({ status: z.literal("ok") });

/** Checks whether the server can listen on the configured address, or already listens there. */
export function portProbe({ http, sandbox }: Config): DoctorProbe {
  return { look: async () => [await port(http, sandbox.root)] };
}

async function port(http: Config["http"], dataFolder: string): Promise<DoctorCheck> {
  if (http.socket !== "") return ok(NAMED, `${http.socket} (Unix socket)`);
  if (http.port === 0) return ok(NAMED, "any free port");
  // For `localhost` the server listens on both loopback addresses, so both must be free.
  const hosts = http.host === "localhost" ? ["127.0.0.1", "::1"] : [http.host];
  for (const host of hosts) {
    const problem = await whyNotListen(host, http.port);
    const isMissing = host !== http.host && (problem === "EADDRNOTAVAIL" || problem === "EAFNOSUPPORT");
    if (problem !== undefined && !isMissing) return explain(problem, { http, host, dataFolder });
  }
  return ok(NAMED, `${http.host}:${http.port} is free`);
}

async function explain(
  problem: string,
  { http, host, dataFolder }: { readonly http: Config["http"]; readonly host: string; readonly dataFolder: string },
): Promise<DoctorCheck> {
  const where = `${host.includes(":") ? `[${host}]` : host}:${http.port}`;
  if (problem !== "EADDRINUSE")
    return failed(
      NAMED,
      `${where} cannot be used: ${problem}`,
      "set --host and --port to what this user may listen on",
    );
  if (!(await isOwlClaw(http, ASKED_AT[host] ?? host))) return failed(NAMED, `${where} is in use`, OTHER_PORT);
  if (await isServed(dataFolder).catch(() => false)) return ok(NAMED, `this server is listening on ${where}`);
  return warning(
    NAMED,
    `an OwlClaw server is listening on ${where}, and nobody serves this data folder`,
    `where it is not the one you mean: ${OTHER_PORT}`,
  );
}

async function whyNotListen(host: string, number: number): Promise<string | undefined> {
  const server = createServer();
  const problem = await new Promise<string | undefined>((resolve) => {
    server.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ host, port: number }, () => resolve(undefined));
  });
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return problem;
}

/** Recognizes OwlClaw by its health response and by the trace header that it adds to every response. */
function isOwlClaw({ port: number, tls }: Config["http"], host: string): Promise<boolean> {
  const signal = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
  const asked = { host, port: number, path: "/health/live", agent: false, signal } as const;
  return new Promise((resolve) => {
    // The request only identifies the server, so it accepts a certificate for another name.
    const request = tls.certFile === "" ? get(asked) : getSecurely({ ...asked, rejectUnauthorized: false });
    request.once("error", () => resolve(false));
    request.once("response", (response) => {
      const isTraced = response.headers["x-trace-id"] !== undefined;
      json(response).then(
        (body) => resolve(isTraced && liveSchema.safeParse(body).success),
        () => resolve(false),
      );
    });
  });
}
