import { describe, expect, it } from "vitest";
import fc from "fast-check";
import { encodeProgram } from "../../../../src/sandbox/runtimes/seccomp/bpf-program.ts";
import { seccompFilter } from "../../../../src/sandbox/runtimes/seccomp/filter.ts";
import {
  type Architecture,
  AUDIT_ARCHITECTURE,
  NEWEST_KNOWN_SYSCALL,
  syscallNumber,
  type SyscallName,
} from "../../../../src/sandbox/runtimes/seccomp/syscall-numbers.ts";

const ARCHITECTURES: readonly Architecture[] = ["x64", "arm64"];

interface Call {
  readonly number: number;
  readonly architecture?: number;
  readonly args?: readonly (number | bigint)[];
}

/** What the kernel would do: a classic BPF machine of the seven instructions that the filter uses, over the encoded bytes. */
function decide(architecture: Architecture, call: Call): "allow" | number {
  const program = encodeProgram(seccompFilter(architecture));
  const data = Buffer.alloc(64);
  data.writeUInt32LE(call.number >>> 0, 0);
  data.writeUInt32LE(call.architecture ?? AUDIT_ARCHITECTURE[architecture], 4);
  for (const [index, arg] of (call.args ?? []).entries())
    data.writeBigUInt64LE(BigInt.asUintN(64, BigInt(arg)), 16 + index * 8);
  let accumulator = 0;
  for (let at = 0; at < program.length / 8; at += 1) {
    const code = program.readUInt16LE(at * 8);
    const [jumpTrue, jumpFalse] = [program.readUInt8(at * 8 + 2), program.readUInt8(at * 8 + 3)];
    const constant = program.readUInt32LE(at * 8 + 4);
    const jump = (holds: boolean): void => void (at += holds ? jumpTrue : jumpFalse);
    if (code === 0x20) accumulator = data.readUInt32LE(constant);
    else if (code === 0x54) accumulator = (accumulator & constant) >>> 0;
    else if (code === 0x15) jump(accumulator === constant);
    else if (code === 0x25) jump(accumulator > constant);
    else if (code === 0x45) jump((accumulator & constant) !== 0);
    else if (code === 0x06) return constant === 0x7fff0000 ? "allow" : constant - 0x00050000;
    else throw new Error(`unknown instruction ${code}`);
  }
  throw new Error("the program ran past its end");
}

describe.each(ARCHITECTURES)("the filter on %s", (architecture) => {
  const of = (name: SyscallName, ...args: (number | bigint)[]): "allow" | number | null => {
    const number = syscallNumber(name, architecture);
    return number === null ? null : decide(architecture, { number, args });
  };

  it.each([
    "ptrace",
    "bpf",
    "keyctl",
    "io_uring_setup",
    "mount",
    "setns",
    "perf_event_open",
    "kexec_load",
    "reboot",
  ] as const)("refuses %s", (name) => expect(of(name)).toBe(1));

  it("makes clone3 and openat2 absent, so that libraries fall back to calls that it can read", () => {
    expect([of("clone3"), of("openat2")]).toEqual([38, 38]);
  });

  it("allows threads and processes, and no new namespace of any kind", () => {
    expect(of("clone", 0x3d0f00)).toBe("allow");
    expect(of("clone", 17)).toBe("allow");
    for (const flag of [0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000]) {
      expect([of("clone", flag | 17), of("unshare", flag)]).toEqual([1, 1]);
    }
    expect(of("unshare", 0x80)).toBe(1);
    expect(of("unshare", 0x400)).toBe("allow");
  });

  it("allows unix, internet and routing sockets alone", () => {
    const families = Array.from({ length: 64 }, (_, family) => family).filter(
      (family) => of("socket", family, 1, 0) === "allow",
    );
    expect(families).toEqual([1, 2, 10, 16]);
    expect(of("socket", 16, 3, 9)).toBe(97);
  });

  it("allows pairs of sockets of the same families alone", () => {
    const families = Array.from({ length: 64 }, (_, family) => family).filter(
      (family) => of("socketpair", family, 1, 0) === "allow",
    );
    expect(families).toEqual([1, 2, 10, 16]);
  });

  it("makes asynchronous I/O absent", () => {
    expect([of("io_setup"), of("io_submit"), of("io_pgetevents")]).toEqual([38, 38, 38]);
  });

  it("looks at the half of an argument that the kernel looks at", () => {
    expect(of("ioctl", 0, 0x5412n | (1n << 32n))).toBe(1);
    expect(of("socket", 38n | (1n << 32n))).toBe(97);
    expect(of("clone", 0x10000000n | (1n << 63n))).toBe(1);
  });

  it("refuses set-id bits wherever a file's mode is set, and reads no mode that is not one", () => {
    for (const bits of [0o4755, 0o2755, 0o6000]) {
      expect([
        of("fchmod", 3, bits),
        of("fchmodat", 3, 0, bits),
        of("fchmodat2", 3, 0, bits),
        of("mknodat", 3, 0, bits),
      ]).toEqual([1, 1, 1, 1]);
      expect([of("openat", 3, 0, 0x40, bits), of("openat", 3, 0, 0x400000, bits)]).toEqual([1, 1]);
      expect(of("openat", 3, 0, 0, bits)).toBe("allow");
      expect(
        [of("chmod", 0, bits), of("creat", 0, bits), of("open", 0, 0x40, bits)].every(
          (answer) => answer === 1 || answer === null,
        ),
      ).toBe(true);
    }
    expect(of("fchmod", 3, 0o1777)).toBe("allow");
  });

  it("allows the plain personality and the question for it", () => {
    expect([of("personality", 0), of("personality", 0xffffffff), of("personality", 0x40000)]).toEqual([
      "allow",
      "allow",
      1,
    ]);
  });

  it("refuses every call of another architecture, of x32, and younger than itself", () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffffffff }), fc.integer({ min: 0, max: 0xffffffff }), (number, other) => {
        fc.pre(other !== AUDIT_ARCHITECTURE[architecture]);
        expect(decide(architecture, { number, architecture: other })).toBe(38);
        expect(decide(architecture, { number: Math.max(number, NEWEST_KNOWN_SYSCALL + 1) })).toBe(38);
      }),
    );
    expect(decide(architecture, { number: 0x40000000 })).toBe(38);
  });

  it("ends with an answer for every number", () => {
    const numbers = Array.from({ length: NEWEST_KNOWN_SYSCALL + 2 }, (_, number) => number);
    const answers = new Set(numbers.map((number) => decide(architecture, { number })));
    expect(answers).toEqual(new Set(["allow", 1, 38, 97]));
  });
});
