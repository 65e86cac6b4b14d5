import { connect } from "node:net";
import type { Machine, MachineBuilder, MicrosandboxSdk } from "../../../../../src/sandbox/runtimes/microsandbox/sdk.ts";

export interface Written {
  readonly calls: [name: string, ...args: unknown[]][];
  readonly destroyed: string[];
}

/** Writes down what is asked of it. A machine itself boots in test/vm alone. */
export function fakeSdk(
  machines: Readonly<Record<string, Readonly<Record<string, string>>>> = {},
  create: (written: Written) => Promise<Machine> = () => Promise.reject(new Error("[BootStart] no /dev/kvm")),
): { readonly sdk: MicrosandboxSdk; readonly written: Written } {
  const written: Written = { calls: [], destroyed: [] };
  const recorder = (prefix: string): unknown => {
    const self: unknown = new Proxy(
      {},
      {
        get: (_target, name) =>
          name === "create"
            ? () => create(written)
            : (...args: unknown[]) => {
                const told = args.filter((arg) => typeof arg !== "function");
                written.calls.push([`${prefix}${String(name)}`, ...told]);
                for (const configure of args.filter((arg) => typeof arg === "function"))
                  configure(recorder(`${prefix}${String(name)}(${told.join()}).`));
                return self;
              },
      },
    );
    return self;
  };
  const found = Object.entries(machines).map(([name, labels]) => ({
    name,
    config: () => ({ labels }),
    destroy: () => Promise.resolve(void written.destroyed.push(name)),
  }));
  const sdk: MicrosandboxSdk = {
    setDefaultBackend: (backend) => void written.calls.push(["setDefaultBackend", backend]),
    Sandbox: {
      builder: (name) => {
        written.calls.push(["builder", name]);
        return recorder("") as MachineBuilder;
      },
      get: (name) =>
        name.includes("-left-")
          ? Promise.resolve({
              name,
              config: () => ({}),
              destroy: () => Promise.resolve(void written.destroyed.push(name)),
            })
          : Promise.reject(new Error("sandbox not found")),
      // It gives all of them, whatever label is asked for: the reaper must look for itself.
      listWith: () => Promise.resolve({ sandboxes: found }),
    },
  };
  return { sdk, written };
}

/** A machine without a processor: its launcher calls the host, and ends when the host hangs up. */
export function fakeMachine({ calls }: Written, destroy: () => Promise<void>): Machine {
  return {
    execStreamWith: async () => {
      const path = calls.findLast(([name, , port]) => name === "vsock" && port === 5001)?.[1];
      const line = connect(String(path)).resume();
      line.write("\0");
      const ended = new Promise<null>((resolve) => line.once("close", () => resolve(null)));
      return { recv: async () => await ended };
    },
    metrics: async () => ({ memoryBytes: 0, vcpuTimeNs: 0 }),
    destroy,
  };
}
