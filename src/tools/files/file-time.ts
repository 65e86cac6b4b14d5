/** Reading a large file or searching a large tree takes a while; longer than this is stuck. */
export const FILE_TIMEOUT_MS = 120_000;
