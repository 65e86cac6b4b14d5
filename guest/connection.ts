import {
  createMessageConnection,
  ErrorCodes,
  ResponseError,
  type CancellationToken,
  type MessageConnection,
} from "vscode-jsonrpc/node";
import { BadParams, Failure } from "./failure.ts";
import { FrameReader, FrameWriter } from "./frames.ts";
import { serveTimed } from "./timings.ts";
import { GUEST_FAILURE_CODE, type GuestMethods } from "./rpc.ts";

type Handler<Method extends keyof GuestMethods> = (
  params: unknown,
  signal: AbortSignal,
) => GuestMethods[Method]["result"] | Promise<GuestMethods[Method]["result"]>;

export type Handlers = { readonly [Method in keyof GuestMethods]: Handler<Method> };

/** The host's side is stdin and stdout; nothing else may be written there. */
export function openConnection(): MessageConnection {
  return createMessageConnection(new FrameReader(process.stdin), new FrameWriter(process.stdout));
}

export function serve(connection: MessageConnection, handlers: Handlers): void {
  connection.onRequest(async (method, params, token) => {
    if (!isMethod(method, handlers)) throw new ResponseError(ErrorCodes.MethodNotFound, `there is no method ${method}`);
    try {
      return await serveTimed(params, () => handlers[method](params, toSignal(token)));
    } catch (error) {
      throw toResponseError(error);
    }
  });
  connection.listen();
}

function isMethod(name: string, handlers: Handlers): name is keyof GuestMethods {
  return Object.hasOwn(handlers, name);
}

function toResponseError(error: unknown): unknown {
  if (error instanceof Failure) return new ResponseError(GUEST_FAILURE_CODE, error.message, error.data);
  if (error instanceof BadParams) return new ResponseError(ErrorCodes.InvalidParams, error.message);
  return error;
}

function toSignal(token: CancellationToken): AbortSignal {
  const controller = new AbortController();
  if (token.isCancellationRequested) controller.abort();
  token.onCancellationRequested(() => controller.abort());
  return controller.signal;
}
