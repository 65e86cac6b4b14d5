import { OwlError } from "../errors/owl-error.ts";

interface Revision {
  readonly name: string;
  /** Whether `initialize` opens a session. Without it, every request names its revision itself. */
  readonly hasHandshake: boolean;
  readonly hasBatches: boolean;
  /** Whether its clients understand an event without data, which opens a stream that can be resumed. */
  readonly hasResumableStreams: boolean;
}

/** Newest first. */
const REVISIONS: readonly Revision[] = [
  { name: "2026-07-28", hasHandshake: false, hasBatches: false, hasResumableStreams: false },
  { name: "2025-11-25", hasHandshake: true, hasBatches: false, hasResumableStreams: true },
  { name: "2025-06-18", hasHandshake: true, hasBatches: false, hasResumableStreams: false },
  { name: "2025-03-26", hasHandshake: true, hasBatches: true, hasResumableStreams: false },
  { name: "2024-11-05", hasHandshake: true, hasBatches: false, hasResumableStreams: false },
];

export const SUPPORTED_VERSIONS: readonly string[] = REVISIONS.map(({ name }) => name);
export const LEGACY_VERSIONS: readonly string[] = namesOf(({ hasHandshake }) => hasHandshake);
export const MODERN_VERSIONS: readonly string[] = namesOf(({ hasHandshake }) => !hasHandshake);

/** What `initialize` negotiates with a client that asks for an unknown revision. */
export const NEWEST_LEGACY_VERSION = "2025-11-25";
export const NEWEST_MODERN_VERSION = "2026-07-28";

/** The revision of a client that sends requests without a handshake and without a version. */
export const PLAIN_VERSION = "2025-03-26";

/** Also true for future revisions: they have no handshake either. */
export function isModern(version: string): boolean {
  return version >= NEWEST_MODERN_VERSION;
}

export function hasBatches(version: string): boolean {
  return namesOf((revision) => revision.hasBatches).includes(version);
}

export function hasResumableStreams(version: string): boolean {
  return namesOf((revision) => revision.hasResumableStreams).includes(version);
}

function namesOf(isMeant: (revision: Revision) => boolean): readonly string[] {
  return REVISIONS.filter(isMeant).map(({ name }) => name);
}

export function isSupported(version: string): boolean {
  return SUPPORTED_VERSIONS.includes(version);
}

/**
 * Rejects a value that is not a version, or is older than all supported revisions. A newer version is left to the
 * handshake, which answers with the newest supported revision.
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
