import { createSocket } from "node:dgram";
import { onTestFinished } from "vitest";

/** A name server on loopback that knows the A records it is given. `silent` names get no answer at all. */
export async function startDns(records: Readonly<Record<string, readonly string[] | "silent">>): Promise<string> {
  const socket = createSocket("udp4");
  socket.on("message", (question, from) => {
    const { name, end } = readName(question);
    const known = records[name];
    if (known === "silent") return;
    const isA = question.readUInt16BE(end) === 1;
    const answers = isA ? (known ?? []) : [];
    const head = Buffer.from(question.subarray(0, 12));
    head.writeUInt16BE(known === undefined ? 0x81_83 : 0x81_80, 2);
    head.writeUInt16BE(answers.length, 6);
    head.writeUInt32BE(0, 8);
    const rows = answers.map((address) =>
      Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split(".").map(Number)]),
    );
    socket.send(Buffer.concat([head, question.subarray(12, end + 4), ...rows]), from.port, from.address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  onTestFinished(() => void socket.close());
  return `127.0.0.1:${socket.address().port}`;
}

function readName(question: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let size = question[at] ?? 0; size > 0; size = question[at] ?? 0) {
    labels.push(question.toString("latin1", at + 1, at + 1 + size));
    at += 1 + size;
  }
  return { name: labels.join(".").toLowerCase(), end: at + 1 };
}
