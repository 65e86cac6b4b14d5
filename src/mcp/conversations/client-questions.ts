import { OwlError } from "../../errors/owl-error.ts";
import type { Lifeline } from "../../call/lifeline.ts";
import type { JsonRpcRequest, JsonRpcNotification, JsonRpcResponse } from "../json-rpc.ts";
import type { Question } from "./questions.ts";

/** A person or a model answers: that may take a while. */
const ANSWER_TIMEOUT_MS = 600_000;

export interface AskedFor {
  /** Sends the question along with the request that it belongs to. */
  readonly send: (message: JsonRpcRequest | JsonRpcNotification) => void;
  /** The life of that request. */
  readonly life: Lifeline;
}

/** Questions to the client of one connection, each a request of the server, and the client's answers to them. */
export class ClientQuestions {
  /** By id as text: some clients answer a number with its digits. */
  readonly #open = new Map<string, (answer: JsonRpcResponse | OwlError) => void>();
  #nextId: number;

  constructor(firstId: number) {
    this.#nextId = firstId;
  }

  ask({ method, params }: Question, { send, life }: AskedFor): Promise<unknown> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      const settle = (answer: JsonRpcResponse | OwlError): void => {
        this.#open.delete(String(id));
        clearTimeout(timer);
        unlink();
        if (answer instanceof OwlError) reject(answer);
        else if ("result" in answer) resolve(answer.result);
        else reject(new Error(answer.error.message));
      };
      const timer = setTimeout(() => {
        const reason = `no answer within ${ANSWER_TIMEOUT_MS / 1000} seconds`;
        send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason } });
        settle(new OwlError("execution_error", `the client gave ${reason} to "${method}"`));
      }, ANSWER_TIMEOUT_MS);
      this.#open.set(String(id), settle);
      let unlink = (): void => {};
      unlink = life.onEnd(() => settle(new OwlError("cancelled", "the request was cancelled")));
      if (!life.isOver) send({ jsonrpc: "2.0", id, method, params });
    });
  }

  /** Takes the client's answer. One to a question that is not open is ignored. */
  answer(response: JsonRpcResponse): void {
    this.#open.get(String(response.id))?.(response);
  }
}
