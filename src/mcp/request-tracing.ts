import type { JsonRpcRequest, JsonRpcResponse } from "./json-rpc.ts";
import type { RequestOrigin } from "./request-watch.ts";

type Answer = JsonRpcResponse | undefined;

/** Puts requests into traces. Absent when nobody traces. */
export interface RequestTracing {
  /** A message came in at a door; its carrier, such as its headers, may say which trace it belongs to. */
  arrived<T>(carrier: unknown, serve: () => T): T;
  /** It is known now who asks. */
  identified(): void;
  /** Serves one request of the message. */
  serve(request: JsonRpcRequest, origin: RequestOrigin, serve: () => Promise<Answer>): Promise<Answer>;
}
