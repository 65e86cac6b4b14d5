import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { wholeBody } from "./whole-body.ts";

export interface ReceivedAlert {
  readonly event: string;
  readonly severity: string;
  readonly message: string;
}

/** Whoever an operator has told to hear of trouble. */
export interface Webhook {
  readonly url: string;
  readonly received: ReceivedAlert[];
  /** Takes nothing while it is so. */
  isDead: boolean;
}

export async function startWebhook(): Promise<Webhook> {
  const received: ReceivedAlert[] = [];
  const server = createServer((request, response) => {
    if (webhook.isDead) return void request.destroy();
    void wholeBody(request).then((body) => {
      if (body === undefined) return;
      received.push(JSON.parse(body) as ReceivedAlert);
      response.end();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/s3cret`;
  const webhook: Webhook = { url, received, isDead: false };
  return webhook;
}
