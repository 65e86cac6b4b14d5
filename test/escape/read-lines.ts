import type { Readable } from "node:stream";

/** Lines as the protocol has them, which end with \n alone: newer Nodes' readline ends them inside of JSON texts too. */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  let rest = "";
  stream.setEncoding("utf8").on("data", (chunk: string) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
  });
}
