import { type IncomingMessage, type OutgoingHttpHeader, type OutgoingHttpHeaders, ServerResponse } from "node:http";
import { traceIdFrom } from "../../mcp/request-observer.ts";

const TRACE_HEADER = "x-trace-id";

type Headers = OutgoingHttpHeaders | OutgoingHttpHeader[];

/**
 * Tells its trace id with whatever it answers. A header that is set ahead of the others makes Node look at each of them
 * twice, which takes longer than all that governance looks at: this one goes out together with them.
 */
export class TracedResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {
  traceId = "";

  override writeHead(status: number, reason?: string | Headers, headers?: Headers): this {
    // Node answers by itself what it cannot read.
    this.traceId ||= traceIdFrom(this.req.headers["traceparent"]);
    if (typeof reason === "string" || Array.isArray(reason) || this.getHeaderNames().length > 0) {
      this.setHeader(TRACE_HEADER, this.traceId);
      return typeof reason === "string" ? super.writeHead(status, reason, headers) : super.writeHead(status, reason);
    }
    return super.writeHead(status, { [TRACE_HEADER]: this.traceId, ...reason });
  }
}

/** From now on the answer says it, however it is sent. */
export function tellTraceId(response: ServerResponse, traceId: string): void {
  if (response instanceof TracedResponse) response.traceId = traceId;
  else response.setHeader(TRACE_HEADER, traceId);
}
