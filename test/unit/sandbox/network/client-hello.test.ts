import { Duplex } from "node:stream";
import { connect } from "node:tls";
import { describe, expect, test } from "vitest";
import { readClientHello } from "../../../../src/sandbox/network/client-hello.ts";

/** What Node's own TLS sends first. */
async function realGreeting(servername: string | undefined): Promise<Buffer> {
  return await new Promise((resolve) => {
    const wire = new Duplex({
      read() {},
      write(chunk: Buffer) {
        resolve(chunk);
      },
    });
    connect({ socket: wire, ...(servername === undefined ? {} : { servername }) }).on("error", () => {});
  });
}

/** The same message cut into records of this size. */
function inRecords(clientHello: Buffer, size: number): Buffer {
  const message = clientHello.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += size) {
    const part = message.subarray(at, at + size);
    const head = Buffer.from([22, 3, 1, 0, 0]);
    head.writeUInt16BE(part.length, 3);
    records.push(head, part);
  }
  return Buffer.concat(records);
}

describe("the server name of a TLS greeting", () => {
  test("is read", async () => {
    expect(readClientHello(await realGreeting("a.example.com"))).toEqual({ kind: "tls", serverName: "a.example.com" });
  });

  test("is absent when the client sends none", async () => {
    expect(readClientHello(await realGreeting(undefined))).toEqual({ kind: "tls", serverName: undefined });
  });

  test("is read when the greeting is cut into small records", async () => {
    const clientHello = inRecords(await realGreeting("a.example.com"), 7);
    expect(readClientHello(clientHello)).toEqual({ kind: "tls", serverName: "a.example.com" });
  });

  test("is waited for until the greeting is whole", async () => {
    const clientHello = await realGreeting("a.example.com");
    const kinds = new Set<string>();
    for (let length = 0; length < clientHello.length; length++)
      kinds.add(readClientHello(clientHello.subarray(0, length)).kind);
    expect([...kinds]).toEqual(["more"]);
  });
});

test("what is no TLS is passed on", () => {
  expect(readClientHello(Buffer.from("GET / HTTP/1.1\r\n"))).toEqual({ kind: "not-tls" });
});

test("no change of one byte makes it throw", async () => {
  const clientHello = await realGreeting("a.example.com");
  for (let at = 0; at < clientHello.length; at++) {
    const changed = Buffer.from(clientHello);
    changed[at] = 255 - (changed[at] ?? 0);
    expect(["tls", "more", "malformed", "not-tls"]).toContain(readClientHello(changed).kind);
  }
});
