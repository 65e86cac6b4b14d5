/** One instruction of a classic BPF program, as `struct sock_filter`. */
export interface Instruction {
  readonly code: number;
  readonly jumpTrue: number;
  readonly jumpFalse: number;
  readonly constant: number;
}

const LOAD_WORD = 0x20;
const AND = 0x54;
const JUMP_EQUAL = 0x15;
const JUMP_GREATER = 0x25;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;

const RETURN_ALLOW = 0x7fff0000;
const RETURN_ERRNO = 0x00050000;

/** Where the kernel puts the facts of a call, `struct seccomp_data`. */
export const NUMBER_OFFSET = 0;
export const ARCHITECTURE_OFFSET = 4;

/** The low half of an argument: flags, modes and families have 32 bits. */
export function argumentOffset(index: number): number {
  return 16 + index * 8;
}

export function load(offset: number): Instruction {
  return { code: LOAD_WORD, jumpTrue: 0, jumpFalse: 0, constant: offset };
}

export function and(mask: number): Instruction {
  return { code: AND, jumpTrue: 0, jumpFalse: 0, constant: mask };
}

export function allow(): Instruction {
  return { code: RETURN, jumpTrue: 0, jumpFalse: 0, constant: RETURN_ALLOW };
}

export function fail(errno: number): Instruction {
  return { code: RETURN, jumpTrue: 0, jumpFalse: 0, constant: RETURN_ERRNO | errno };
}

type Comparison = "equals" | "greater" | "anyBit";

const COMPARISON_CODES: Record<Comparison, number> = {
  equals: JUMP_EQUAL,
  greater: JUMP_GREATER,
  anyBit: JUMP_ANY_BIT,
};

/** Runs the block when the comparison with the loaded value holds. */
export function when(comparison: Comparison, constant: number, block: readonly Instruction[]): Instruction[] {
  return [{ code: COMPARISON_CODES[comparison], jumpTrue: 0, jumpFalse: jump(block), constant }, ...block];
}

/** Runs the block unless the comparison with the loaded value holds. */
export function unless(comparison: Comparison, constant: number, block: readonly Instruction[]): Instruction[] {
  return [{ code: COMPARISON_CODES[comparison], jumpTrue: jump(block), jumpFalse: 0, constant }, ...block];
}

/** The binary form of a program; both architectures are little-endian. */
export function encodeProgram(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, { code, jumpTrue, jumpFalse, constant }] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(jumpTrue, index * 8 + 2);
    bytes.writeUInt8(jumpFalse, index * 8 + 3);
    bytes.writeUInt32LE(constant >>> 0, index * 8 + 4);
  }
  return bytes;
}

function jump(block: readonly Instruction[]): number {
  if (block.length > 255) throw new RangeError(`a block of ${block.length} instructions is too far to jump over`);
  return block.length;
}
