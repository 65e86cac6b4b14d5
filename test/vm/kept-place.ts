import { get } from "node:http";
import { text } from "node:stream/consumers";
import type { KeeperOrder, ServedRuntime } from "./keeper-order.ts";

/** What the test cannot see from outside. */
export interface KeptFacts {
  /** Processes of microVMs. */
  readonly machines: number;
  readonly sandboxes: readonly string[];
  readonly folders: readonly string[];
  /** Of the host, which microVMs call. */
  readonly sockets: readonly string[];
  readonly written: string;
  readonly logs: readonly { readonly bytes: number; readonly text: string }[];
  readonly log: readonly string[];
  /** What the job about limits printed, when it was asked for. */
  readonly limits?: readonly string[];
  /** What the job about the systemd unit printed. */
  readonly unit?: readonly string[];
}

/** Anything but `facts` is done first. */
export type Wish = "facts" | "kill" | "foreign" | "bubblewrap" | "limits" | "unit" | "busy" | "calm";

/** Servers that run somewhere, with somebody who looks after them. */
export interface KeptPlace {
  /** Where, for people who read figures. */
  readonly name: string;
  readonly order: KeeperOrder;
  /** The end of what the servers wrote. */
  lastWords(): string;
  ask(what: Wish): Promise<KeptFacts>;
  stop(): Promise<void>;
}

export function urlOf({ order }: KeptPlace, runtime: ServedRuntime): string {
  return `http://127.0.0.1:${order.ports[runtime]}/mcp`;
}

/** For one whose keeper is reached at this port from here. It may take minutes to answer. */
export function asker(port: number, lastWords: () => string): KeptPlace["ask"] {
  return async (what) => {
    const { status, body } = await new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
      get(`http://127.0.0.1:${port}/${what}`, (answer) => {
        text(answer).then((body) => resolve({ status: answer.statusCode, body }), reject);
      }).on("error", reject);
    });
    if (status !== 200) throw new Error(`${what}: ${body}\n${lastWords()}`);
    return JSON.parse(body) as KeptFacts;
  };
}
