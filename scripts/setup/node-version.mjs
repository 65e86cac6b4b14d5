import { SetupError } from "./announce.mjs";

export function requireNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new SetupError(`Node 20.19 or newer is needed; ${process.execPath} is ${process.versions.node}`);
}
