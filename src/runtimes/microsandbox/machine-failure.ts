import { OwlError } from "../../errors/owl-error.ts";

/** What microsandbox said, in terms of what an operator can do. */
export function explainMachineError(error: unknown, image: string): unknown {
  if (error instanceof OwlError || !(error instanceof Error)) return error;
  const { message } = error;
  if (/image not cached|ImageNotFound/i.test(message)) {
    return new OwlError("sandbox_unavailable", `microsandbox has no image ${image}`, {
      retryable: true,
      facts: { reason: "image_missing", image },
      hint: `Load it: \`docker save ${image} -o image.tar && npx msb load -i image.tar\` (docs/runtimes.md).`,
      cause: error,
    });
  }
  if (/no space left on device|disk quota exceeded/i.test(message)) {
    return new OwlError("sandbox_unavailable", "the disk for microVMs is full", {
      retryable: true,
      hint: "Free space in the data folder and in microsandbox's own (~/.microsandbox); then call again.",
      cause: error,
    });
  }
  if (/\[?BootStart\]?|\/dev\/kvm|virtuali[sz]ation/i.test(message)) {
    return new OwlError("sandbox_unavailable", `a microVM does not start here: ${firstLine(message)}`, {
      facts: { reason: "no_boot" },
      hint: "Run `npx msb doctor`: it needs a processor with virtualisation and access to /dev/kvm (group kvm), or macOS on Apple silicon. Inside a virtual machine, nested virtualisation must be on.",
      cause: error,
    });
  }
  return new OwlError("sandbox_unavailable", `microsandbox failed: ${firstLine(message)}`, {
    retryable: true,
    hint: "Run `npx msb doctor`; microsandbox keeps its logs in ~/.microsandbox.",
    cause: error,
  });
}

function firstLine(message: string): string {
  return (message.split("\n", 1)[0] ?? "").slice(0, 500);
}
