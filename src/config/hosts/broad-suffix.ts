// Below these, anybody can register a name. The list holds the common ones, not all: docs/network.md says so.
const SHARED_HOSTING = new Set([
  "amazonaws.com",
  "appspot.com",
  "azurewebsites.net",
  "blob.core.windows.net",
  "cloudapp.net",
  "cloudfront.net",
  "firebaseapp.com",
  "fly.dev",
  "github.io",
  "gitlab.io",
  "herokuapp.com",
  "netlify.app",
  "ngrok.io",
  "onrender.com",
  "pages.dev",
  "readthedocs.io",
  "run.app",
  "s3.amazonaws.com",
  "trycloudflare.com",
  "vercel.app",
  "web.app",
  "windows.net",
  "workers.dev",
]);

// The second level that country registries sell under, as in co.uk and com.au.
const REGISTRY_SECOND_LEVEL = /^(?:ac|co|com|edu|gob|go|gov|ltd|mil|ne|net|nom|or|org|plc|sch)$/;

/** Why a wildcard below this name would let in hosts of anybody; undefined when it would not. */
export function whyTooBroad(suffix: string): string | undefined {
  const labels = suffix.split(".");
  const [second = "", top = ""] = labels.slice(-2);
  if (labels.length === 1) return `"*.${suffix}" covers a whole top-level domain`;
  if (labels.length === 2 && top.length === 2 && REGISTRY_SECOND_LEVEL.test(second)) {
    return `"*.${suffix}" covers a whole public suffix`;
  }
  if (SHARED_HOSTING.has(suffix)) return `anybody can get a name below ${suffix}`;
  return undefined;
}
