import { accessSync, constants } from "node:fs";
import { OwlError } from "../../../errors/owl-error.ts";
import { hasCode } from "../host-files.ts";

const KVM = "/dev/kvm";

/** Opens /dev/kvm, or throws the system's error. */
type OpenKvm = () => void;

/** An error of microsandbox with a hint for the operator. */
export function explainMachineError(error: unknown, image: string, openKvm: OpenKvm = openKvmDevice): unknown {
  const explained = explainFullDisk(error);
  if (explained instanceof OwlError || !(explained instanceof Error)) return explained;
  const { message } = explained;
  if (/image not cached|ImageNotFound/i.test(message)) {
    return new OwlError("sandbox_unavailable", `microsandbox has no image ${image}`, {
      retryable: true,
      facts: { reason: "image_missing", image },
      hint: `Load it: \`docker save ${image} -o image.tar && npx msb load -i image.tar\` (docs/runtimes.md).`,
      cause: error,
    });
  }
  if (/\[?BootStart\]?|\/dev\/kvm|virtuali[sz]ation/i.test(message)) {
    const { why, hint } = kvmProblem(openKvm);
    return new OwlError("sandbox_unavailable", `a microVM does not start here: ${why} (${firstLine(message)})`, {
      facts: { reason: "no_boot" },
      hint: `${hint} \`npx msb doctor\` shows more. Without KVM, set sandbox.runtime to bubblewrap or docker.`,
      cause: error,
    });
  }
  return new OwlError("sandbox_unavailable", `microsandbox failed: ${firstLine(message)}`, {
    retryable: true,
    hint: "Run `npx msb doctor`; microsandbox keeps its logs in ~/.microsandbox.",
    cause: error,
  });
}

/** A full disk, as microsandbox, the system or a tool reports it. Other errors are returned unchanged. */
export function explainFullDisk(error: unknown): unknown {
  if (!(error instanceof Error && /no space left on device|disk quota exceeded/i.test(error.message))) return error;
  return new OwlError("sandbox_unavailable", "the disk for microVMs is full", {
    retryable: true,
    facts: { reason: "disk_full" },
    hint: "Free space in the data folder and in microsandbox's own (~/.microsandbox); then call again.",
    cause: error,
  });
}

function firstLine(message: string): string {
  return (message.split("\n", 1)[0] ?? "").slice(0, 500);
}

/** The device can exist and still not work. */
function kvmProblem(openKvm: OpenKvm): { readonly why: string; readonly hint: string } {
  try {
    openKvm();
  } catch (error) {
    if (!hasCode(error, "ENOENT")) {
      return { why: `this user may not open ${KVM}`, hint: "Put the user into the group kvm: usermod -aG kvm <user>." };
    }
    return {
      why: `there is no ${KVM}`,
      hint: "It needs a processor with virtualisation, switched on in the firmware, and the kernel's module kvm_intel or kvm_amd; in a virtual machine, nested virtualisation; in a container, --device /dev/kvm.",
    };
  }
  return {
    why: `${KVM} is there, and boots nothing`,
    hint: "In a virtual machine, nested virtualisation must be on: not every provider's works.",
  };
}

function openKvmDevice(): void {
  accessSync(KVM, constants.R_OK | constants.W_OK);
}
