import { expect, onTestFinished, test } from "vitest";
import { openInside, textOf } from "../escape/sandbox-lab.ts";
import { answersWith, forge } from "../escape/take-over.ts";
import type { ContainerEngine } from "../services/container-engine.ts";
import { engineLab, type Opened } from "./engine-lab.ts";

/** What a guest sends is read by the same parts whatever isolates it; what it leaves behind is removed by the engine. */
export function defineHostileGuestTests(engine: () => ContainerEngine): void {
  const lab = engineLab(engine);
  const open = async (): Promise<Opened> => {
    const opened = await lab.open();
    onTestFinished(async () => void (await opened.server.stop()));
    return opened;
  };

  test("a hostile guest is ended for millions of values, and for output that nobody waits for", async () => {
    const { client } = await open();
    const inside = await openInside(client);
    await inside.call("file_write", { path: "a", content: "x" });
    const matches = `'"result":{"matches":[' + "{},".repeat(2700000) + '{}],"isTruncated":false}'`;
    await forge(inside, answersWith('"matches":', matches), { afterwards: "true", timeoutSeconds: 40 });
    expect(textOf(await inside.call("file_search", { pattern: "x" }))).toContain("more than 50000 values");

    const body = JSON.stringify({
      jsonrpc: "2.0",
      method: "output",
      params: { callId: "x", stream: "stdout", text: "" },
    });
    const frame = JSON.stringify(`Content-Length: ${body.length}\r\n\r\n${body}`);
    const flood = `const send = () => process.stdout.write(${frame}, send); send();`;
    expect(await forge(inside, flood)).toContain("more output than a guest sends");
    expect(await inside.sh("echo again")).toBe("again\n");
  });

  test("a hostile guest's folders without rights, and too deep for a path, go with its sandbox", async () => {
    const { client, place } = await open();
    const inside = await openInside(client);
    await inside.sh("mkdir -p d/e && touch d/e/f && chmod 000 d/e d");
    await inside.sh(
      `python3 -c 'import os\nfor _ in range(1000): os.mkdir("n" * 200); os.chdir("n" * 200)\nopen("f", "w").close()'`,
    );
    expect(textOf(await inside.call("sandbox_destroy"))).toContain("and its files are gone");
    expect(await lab.workspacesOf(place)).toEqual([]);
  });
}
