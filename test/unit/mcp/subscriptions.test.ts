import { describe, expect, test } from "vitest";
import type { Caller } from "../../../src/call/call.ts";
import { Lifeline } from "../../../src/call/lifeline.ts";
import { Subscriptions } from "../../../src/mcp/subscriptions.ts";

const CALLER: Caller = {
  principal: { id: "ada", scopes: [], claims: {} },
  label: undefined,
  transport: "stdio",
  protocolVersion: "2026-07-28",
  sessionId: "stdio",
};

function subscriber(id: string | number, cut?: () => void) {
  const sent: { readonly method: string }[] = [];
  const life = new Lifeline();
  return {
    sent,
    life,
    id,
    caller: CALLER,
    cut,
    send: (message: { readonly method: string }) => void sent.push(message),
  };
}

const methodsOf = ({ sent }: ReturnType<typeof subscriber>): string[] => sent.map(({ method }) => method);

describe("what clients listen to", () => {
  test("a filter that asks for nothing that there is ends at once", async () => {
    const subscriptions = new Subscriptions(() => true);
    const asking = subscriber("sub");
    await expect(subscriptions.listen({ toolsListChanged: false }, asking)).resolves.toEqual({
      _meta: { "io.modelcontextprotocol/subscriptionId": "sub" },
    });
    expect(methodsOf(asking)).toEqual(["notifications/subscriptions/acknowledged"]);
  });

  test("a subscription hears of what it asked for until it ends, and others go on", async () => {
    const subscriptions = new Subscriptions(() => true);
    const [first, second] = [subscriber("same"), subscriber("same")];
    const ended = subscriptions.listen({ toolsListChanged: true }, first);
    void subscriptions.listen({ toolsListChanged: true, resourceSubscriptions: ["note://1"] }, second);
    subscriptions.tell({ kind: "list", list: "tools" });
    first.life.end();
    await ended;
    subscriptions.tell({ kind: "list", list: "tools" });
    subscriptions.tell({ kind: "list", list: "prompts" });
    subscriptions.tell({ kind: "resource", uri: "note://1" });
    subscriptions.tell({ kind: "resource", uri: "note://2" });
    const change = "notifications/tools/list_changed";
    expect(methodsOf(first).slice(1)).toEqual([change]);
    expect(methodsOf(second).slice(1)).toEqual([change, change, "notifications/resources/updated"]);
  });

  test("a resource that is hidden meanwhile is told of no more, and cuts a stream of its own", () => {
    const hidden = new Set<string>();
    const subscriptions = new Subscriptions((uri) => !hidden.has(uri));
    let cuts = 0;
    const [line, stream] = [subscriber(1), subscriber(2, () => (cuts += 1))];
    for (const one of [line, stream])
      void subscriptions.listen({ toolsListChanged: true, resourceSubscriptions: ["note://1"] }, one);
    hidden.add("note://1");
    subscriptions.tell({ kind: "resource", uri: "note://1" });
    subscriptions.tell({ kind: "list", list: "tools" });
    expect(methodsOf(line).slice(1)).toEqual(["notifications/tools/list_changed"]);
    expect(methodsOf(stream).slice(1)).toEqual([]);
    expect(cuts).toBe(2);
  });

  test("a connection has a limited number of them, and all end well when it closes", async () => {
    const subscriptions = new Subscriptions(() => true);
    const all = Array.from({ length: 1024 }, (_, id) =>
      subscriptions.listen({ toolsListChanged: true }, subscriber(id)),
    );
    expect(() => subscriptions.listen({ toolsListChanged: true }, subscriber("more"))).toThrow(
      expect.objectContaining({ kind: "overloaded" }),
    );
    subscriptions.close();
    expect(await Promise.all(all)).toHaveLength(1024);
    subscriptions.tell({ kind: "list", list: "tools" });
    void subscriptions.listen({ toolsListChanged: true }, subscriber("again"));
  });
});
