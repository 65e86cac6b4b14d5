import { readFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { isIPv6, connect, createServer } from "node:net";
import { once } from "node:events";
import { getuid } from "node:process";
import { OwlError } from "../../errors/owl-error.ts";

/** Tables of TCP sockets on Linux, with the user id of each socket. */
const TABLES = ["/proc/net/tcp", "/proc/net/tcp6"];
const ROOT_UID = 0;

/** The columns after the two addresses: state, user id and inode. */
const COLUMNS = /^ (\w\w) \S+ \S+ \S+ +(\d+) +\d+ (\d+) /;

/**
 * With auth off, every user of the machine can connect to a loopback port. This class finds in the socket tables
 * whether a connection belongs to the user of the server, or to root.
 */
export class PeerUsers {
  readonly #uid: number;
  readonly #known = new WeakMap<Socket, boolean | Promise<boolean>>();
  #reading: Promise<string> | undefined;
  #next: Promise<string> | undefined;

  constructor(uid: number) {
    this.#uid = uid;
  }

  /** Undefined on systems that do not show the user of a connection. */
  static async open(): Promise<PeerUsers | undefined> {
    const uid = getuid?.();
    if (uid === undefined) return undefined;
    const peers = new PeerUsers(uid);
    return (await peers.#seesItself()) ? peers : undefined;
  }

  /**
   * Checks the user of a connection.
   * @throws OwlError, or rejects with it, when another user owns the connection.
   */
  check(socket: Socket): void | Promise<void> {
    let known = this.#known.get(socket);
    if (known === undefined) {
      known = this.#ask(socket);
      this.#known.set(socket, known);
    }
    if (typeof known === "boolean") return this.#assert(known);
    return known.then((isOwn) => this.#assert(isOwn));
  }

  async #ask(socket: Socket): Promise<boolean> {
    const isOwn = await this.#isOwn(socket);
    this.#known.set(socket, isOwn);
    return isOwn;
  }

  #assert(isOwn: boolean): void {
    if (isOwn) return;
    throw new OwlError("forbidden", "auth is off, and this connection does not belong to the user of the server", {
      facts: { reason: "other_user" },
      hint: "turn auth.enabled on, or set http.allowOtherUsers to serve every user of this machine",
    });
  }

  async #isOwn(socket: Socket): Promise<boolean> {
    const ends = endsOf(socket);
    if (ends === undefined) return false;
    const uid = uidOf(await this.#table(), ends);
    return uid === this.#uid || uid === ROOT_UID;
  }

  /** Reads the tables after the connection was opened. Connections that are opened during a read share the next one. */
  #table(): Promise<string> {
    if (this.#reading === undefined) {
      this.#reading = readTables().finally(() => (this.#reading = undefined));
      return this.#reading;
    }
    this.#next ??= this.#reading
      .catch(() => "")
      .then(() => {
        this.#next = undefined;
        return this.#table();
      });
    return this.#next;
  }

  /** Checks that a connection to itself is in the table: in some containers the table exists and is empty. */
  async #seesItself(): Promise<boolean> {
    const server = createServer((socket) => socket.on("error", () => undefined));
    try {
      server.listen(0, "127.0.0.1");
      const accepted = new Promise<Socket>((resolve) => server.once("connection", resolve));
      await once(server, "listening");
      const address = server.address();
      const client = connect({ host: "127.0.0.1", port: typeof address === "object" ? (address?.port ?? 0) : 0 });
      const socket = await accepted;
      try {
        return await this.#isOwn(socket);
      } finally {
        client.destroy();
        socket.destroy();
      }
    } catch {
      return false;
    } finally {
      server.close();
    }
  }
}

interface Ends {
  /** The addresses of the client's socket as they appear in each table: its own address first. */
  readonly texts: readonly string[];
}

function endsOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): Ends | undefined {
  if (remoteAddress === undefined || remotePort === undefined || localAddress === undefined || localPort === undefined)
    return undefined;
  const client = hexForms(remoteAddress, remotePort);
  const server = hexForms(localAddress, localPort);
  return { texts: client.map((text, index) => ` ${text} ${server[index] ?? ""}`) };
}

/** A client with a dual-stack socket appears in the IPv6 table, with its IPv4 address in mapped form. */
function hexForms(address: string, port: number): readonly string[] {
  const end = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const ipv4 = /^(?:::ffff:)?(\d+)\.(\d+)\.(\d+)\.(\d+)$/i.exec(address)?.slice(1);
  if (ipv4 !== undefined) {
    const word = littleEndian(ipv4.map(Number));
    return [`${word}${end}`, `0000000000000000FFFF0000${word}${end}`];
  }
  return isIPv6(address) ? [`${ipv6Words(address)}${end}`] : [];
}

function ipv6Words(address: string): string {
  const [head = "", tail] = address.replace(/%.*$/, "").split("::");
  const groups = head === "" ? [] : head.split(":");
  const rest = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: 8 - groups.length - rest.length }, () => "0");
  const bytes = [...groups, ...zeros, ...rest].flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
  return [0, 4, 8, 12].map((from) => littleEndian(bytes.slice(from, from + 4))).join("");
}

function littleEndian(bytes: readonly number[]): string {
  return bytes
    .toReversed()
    .map((byte) => byte.toString(16).toUpperCase().padStart(2, "0"))
    .join("");
}

async function readTables(): Promise<string> {
  const tables = await Promise.all(TABLES.map((path) => readFile(path, "utf8").catch(() => "")));
  return tables.join("\n");
}

/** For a socket that its process has closed, the kernel reports inode 0 and user id 0. */
function uidOf(table: string, { texts }: Ends): number | undefined {
  for (const text of texts) {
    const at = table.indexOf(`${text} `);
    if (at === -1) continue;
    const [, , uid, inode] = COLUMNS.exec(table.slice(at + text.length, at + text.length + 160)) ?? [];
    if (uid !== undefined && inode !== "0") return Number(uid);
  }
  return undefined;
}
