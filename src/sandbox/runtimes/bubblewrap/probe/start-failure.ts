import { readFile } from "node:fs/promises";
import { isThere } from "../../is-there.ts";
import type { ProbeCheck } from "../../runtime.ts";

/** Says why no cell could be started, and what to do about it. */
export async function explainStartFailure(message: string): Promise<ProbeCheck> {
  const { detail, fix } = await explain(message);
  return { name: "start", holds: false, severity: "isolation", detail, fix };
}

async function explain(message: string): Promise<{ detail: string; fix: string }> {
  if (message.includes("Unknown option")) {
    return {
      detail: `bubblewrap is too old. ${message}`,
      fix: "Install bubblewrap 0.8 or newer: `sudo apt-get install -y bubblewrap` on Debian 12, Ubuntu 24.04 or newer.",
    };
  }
  if ((await readSetting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")) === "1") {
    return {
      detail: `AppArmor forbids user namespaces to unprivileged programs (the default of Ubuntu 24.04). ${message}`,
      fix: "Allow them to bwrap alone: `sudo apt-get install -y apparmor-profiles && sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict`; or to all programs: `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`.",
    };
  }
  if ((await readSetting("/proc/sys/kernel/unprivileged_userns_clone")) === "0") {
    return {
      detail: `The kernel forbids user namespaces to ordinary users. ${message}`,
      fix: "Run `sudo sysctl -w kernel.unprivileged_userns_clone=1`, and put it in /etc/sysctl.d/ to keep it.",
    };
  }
  if ((await readSetting("/proc/sys/user/max_user_namespaces")) === "0") {
    return {
      detail: `The kernel allows no user namespaces. ${message}`,
      fix: "Run `sudo sysctl -w user.max_user_namespaces=10000`, and put it in /etc/sysctl.d/ to keep it.",
    };
  }
  if ((await isThere("/.dockerenv")) || (await isThere("/run/.containerenv"))) {
    return {
      detail: `The server runs in a container whose profile forbids namespaces. ${message}`,
      fix: "Start the container with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined` (and `--security-opt apparmor=unconfined` where AppArmor is in force).",
    };
  }
  return { detail: message, fix: "Run bwrap by hand to see more: `bwrap --unshare-all --ro-bind / / true`." };
}

export function missingBubblewrap(): ProbeCheck {
  return {
    name: "start",
    holds: false,
    severity: "isolation",
    detail: "bubblewrap is not installed.",
    fix: "Run `sudo apt-get install -y bubblewrap` (Fedora: `sudo dnf install bubblewrap`, Alpine: `apk add bubblewrap`).",
  };
}

async function readSetting(file: string): Promise<string | undefined> {
  return await readFile(file, "utf8").then(
    (text) => text.trim(),
    () => undefined,
  );
}
