import { OwlError } from "../../../errors/owl-error.ts";
import { describeAddress, type EngineAddress } from "./engine-address.ts";

const CODE_REASONS: Readonly<Record<string, string>> = {
  ENOENT: "nothing listens there",
  ECONNREFUSED: "nothing listens there",
  EACCES: "this user may not use it",
  ABORT_ERR: "it does not answer",
  TimeoutError: "it does not answer",
};
const START_HINT =
  "Start Docker or Podman, or set sandbox.docker.host (DOCKER_HOST); the server goes on by itself when the engine is back.";
const ACCESS_HINT =
  "Add the server's user to the group of the socket, or set sandbox.docker.host (DOCKER_HOST) to an engine of that user.";
const TLS_HINT =
  "Check sandbox.docker.certFolder (DOCKER_CERT_PATH): ca.pem must have signed the engine's certificate, which must contain the host name; the engine must trust the issuer of cert.pem.";

/** The engine answered a request with an error. */
export class EngineError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "EngineError";
    this.status = status;
  }
}

/** The engine is down or cannot be reached; it may come back. */
export function engineUnreachable(address: EngineAddress, error: unknown): OwlError {
  const code = error instanceof Error ? ("code" in error ? String(error.code) : error.name) : "";
  const reason = CODE_REASONS[code] ?? CODE_REASONS[error instanceof Error ? error.name : ""];
  const detail = reason ?? (error instanceof Error ? error.message : String(error));
  const name = describeAddress(address);
  return new OwlError("sandbox_unavailable", `the container engine at ${name} cannot be reached: ${detail}`, {
    retryable: true,
    facts: { reason: "engine_down" },
    hint: code === "EACCES" ? ACCESS_HINT : isRefusedHandshake(address, code) ? TLS_HINT : START_HINT,
    cause: error,
  });
}

/** An engine that rejects a certificate may close the connection before it sends an alert. */
function isRefusedHandshake(address: EngineAddress, code: string): boolean {
  if (address.kind === "socket") return false;
  const isOfTls = /^(ERR_(SSL|TLS)_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|EPROTO$)/.test(code);
  return isOfTls || (address.tls !== undefined && ["ECONNRESET", "EPIPE"].includes(code));
}

export function isUnreachable(error: unknown): boolean {
  return error instanceof OwlError && error.facts["reason"] === "engine_down";
}

/** Why a container could not be started, with a hint for the operator. */
export function explainEngineError(error: unknown, image: string): unknown {
  if (!(error instanceof EngineError)) return error;
  const { status, message } = error;
  if (status === 404 && /image/i.test(message)) return imageMissing(image, error);
  if (isNoRoom(message)) return engineDiskFull(error);
  if (/unknown or invalid runtime name|runtime .*not found/i.test(message)) {
    return new OwlError("sandbox_unavailable", `the engine does not know the runtime: ${message}`, {
      hint: "Install it and name it in the engine's configuration, or empty sandbox.docker.runtime.",
      cause: error,
    });
  }
  if (/(bind source path does not exist|no such file or directory).*|invalid mount config/i.test(message)) {
    return new OwlError(
      "sandbox_unavailable",
      `the engine does not see a folder or socket of this machine: ${message}`,
      {
        hint: "Volumes and network.allow need an engine on the same machine as the server, with the same paths.",
        cause: error,
      },
    );
  }
  return new OwlError("internal", `the container could not be started: ${withoutPaths(message)}`, { cause: error });
}

const MAX_REASON_CHARS = 200;

/** The engine names folders of the host, and may print its own structures. The server's log has the whole text. */
function withoutPaths(message: string): string {
  const text = message.replaceAll(/(?<![\w.])\/[^\s:"',;)]+/g, "(path)");
  return text.length > MAX_REASON_CHARS ? `${text.slice(0, MAX_REASON_CHARS)}…` : text;
}

/** The kernel's message, which engines and programs pass on. */
export function isNoRoom(message: string): boolean {
  return /no space left on device|disk quota exceeded/i.test(message);
}

function engineDiskFull(cause?: unknown): OwlError {
  return new OwlError("sandbox_unavailable", "the disk of the container engine is full", {
    retryable: true,
    facts: { reason: "disk_full" },
    hint: "Free space where the engine keeps its data, for instance with `docker system prune`; then call again.",
    cause,
  });
}

export function imageMissing(image: string, cause?: unknown): OwlError {
  return new OwlError("sandbox_unavailable", `the engine has no image ${image}`, {
    retryable: true,
    facts: { reason: "image_missing", image },
    hint: `Get it with \`docker pull ${image}\`, or build it in the package's own folder: \`docker build -t ${image} - < deploy/docker/sandbox.Dockerfile\` (docs/runtimes.md).`,
    cause,
  });
}
