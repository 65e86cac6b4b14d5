import { OwlError } from "../errors/owl-error.ts";

/** Revisions with the `initialize` handshake, newest first. */
export const LEGACY_VERSIONS = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;
/** Revisions without one: every request names its version itself. */
export const MODERN_VERSIONS = ["2026-07-28"] as const;
export const SUPPORTED_VERSIONS: readonly string[] = [...MODERN_VERSIONS, ...LEGACY_VERSIONS];

/** What a client speaks that sends requests with no handshake and no version. */
export const PLAIN_VERSION = "2025-03-26";

export function isModern(version: string): boolean {
  return version >= "2026-07-28";
}

/** The one revision that defines JSON-RPC batches. */
export function hasBatches(version: string): boolean {
  return version === "2025-03-26";
}

/** Clients of these revisions understand an event without data, which opens a stream that can be resumed. */
export function hasResumableStreams(version: string): boolean {
  return version === "2025-11-25";
}

export function isSupported(version: string): boolean {
  return SUPPORTED_VERSIONS.includes(version);
}

/**
 * Refuses what is no version, or older than any that we speak. A newer one than we know is left to the
 * handshake, which answers with the newest that we have.
 */
export function assertNegotiable(requested: unknown): void {
  const oldest = LEGACY_VERSIONS.at(-1) ?? "";
  if (typeof requested === "string" && /^\d{4}-\d{2}-\d{2}$/.test(requested) && requested >= oldest) return;
  throw unsupportedVersion(requested);
}

export function unsupportedVersion(requested: unknown): OwlError {
  const shown =
    typeof requested === "string"
      ? `the protocol version "${requested.slice(0, 64)}" is`
      : "what is no protocol version is";
  return new OwlError(
    "unsupported_version",
    `${shown} not supported; supported versions: ${SUPPORTED_VERSIONS.join(", ")}`,
    {
      facts: {
        supported: SUPPORTED_VERSIONS,
        requested: typeof requested === "string" ? requested.slice(0, 64) : null,
      },
    },
  );
}
