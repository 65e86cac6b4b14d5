import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test } from "vitest";
import { call, type Called, connect, makePlace } from "./sandbox-client.ts";

const PNG_SIGNATURE = "89504e470d0a1a0a";

let client: Client;
beforeAll(async () => {
  client = await connect("stdio", makePlace());
});

function pictures({ content }: Called): string[] {
  return content.flatMap((block) =>
    block.type === "image" ? [`${block.mimeType} ${signature(block.data ?? "")}`] : [],
  );
}

function signature(base64: string): string {
  return Buffer.from(base64, "base64").subarray(0, 8).toString("hex");
}

describe("the python template", () => {
  test("has the libraries that people expect", async () => {
    const result = await call(client, "code_run", { code: "import numpy, pandas, matplotlib, PIL, requests" });
    expect(result.structuredContent).toMatchObject({ status: "ok", stderr: "" });
  });
});

describe("pictures come back as image content", () => {
  test.each([
    ["a plot that is shown", "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", 1],
    ["a figure that is left open", "import matplotlib.pyplot as plt\nplt.figure().add_subplot().plot([3, 1])", 1],
    [
      "two plots",
      "import matplotlib.pyplot as plt\nfor n in (1, 2):\n    plt.figure()\n    plt.plot([n])\n    plt.show()",
      2,
    ],
    ["a PIL image as the last value", "from PIL import Image\nImage.new('RGB', (4, 4), 'red')", 1],
    ["a PIL image that is shown", "from PIL import Image\nImage.new('RGB', (4, 4), 'red').show()", 1],
  ])("%s", async (_name, code, count) => {
    const result = await call(client, "code_run", { code });
    expect(result.structuredContent).toMatchObject({ status: "ok", images: count });
    expect(pictures(result)).toEqual(Array.from({ length: count }, () => `image/png ${PNG_SIGNATURE}`));
  });

  test("a plot that was saved is a file in the workspace, and no picture comes twice", async () => {
    const code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.savefig('plot.png')\nplt.close()";
    await call(client, "code_run", { code });
    const { structuredContent } = await call(client, "file_read", { path: "plot.png" });
    expect(signature(String(structuredContent?.["content"]))).toBe(PNG_SIGNATURE);
    expect(pictures(await call(client, "code_run", { code: "1" }))).toEqual([]);
  });

  test("a pandas table comes as text", async () => {
    const code = "import pandas\npandas.DataFrame({'a': [1, 2], 'b': [3, 4]})";
    const { structuredContent } = await call(client, "code_run", { code });
    expect(String(structuredContent?.["value"]).split("\n")[0]?.trim()).toBe("a  b");
  });
});
