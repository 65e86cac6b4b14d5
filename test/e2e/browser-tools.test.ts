import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test } from "vitest";
import { connectToSite, goto, HOME, pixel, refOf, snapshot } from "./browser-site.ts";
import { call, connectStdio, makePlace, readText, type TransportName } from "./sandbox-client.ts";

const TRANSPORTS: readonly TransportName[] = ["stdio", "http"];

const FILE_TOOLS = ["file_list", "file_read", "file_replace", "file_search", "file_write"];

/** What these need beside a path. */
const NEEDED: Readonly<Record<string, Record<string, unknown>>> = {
  file_write: { content: "x" },
  file_replace: { old_text: "a", new_text: "b" },
  file_search: { pattern: "a" },
};

describe.each(TRANSPORTS)("the browser over %s", (transport) => {
  let client: Client;

  beforeAll(async () => {
    client = await connectToSite(transport);
  });

  test("[002-goto] [002-rpc] a page of a server in the sandbox opens, and its address, title and status come back", async () => {
    const opened = await goto(client, "/redirect?to=/index.html");
    expect(readText(opened).head).toBe(`browser_goto ok: ${HOME}/index.html (Front page), status 200`);
    expect(opened.structuredContent).toMatchObject({ url: `${HOME}/index.html`, title: "Front page", status: 200 });
  });

  test("[002-snapshot] a snapshot has address, title, text, and elements with refs", async () => {
    await goto(client, "/index.html");
    const { url, title, text, elements } = await snapshot(client);
    expect({ url, title }).toEqual({ url: `${HOME}/index.html`, title: "Front page" });
    expect(text.split("\n").map((line) => line.replaceAll(/ref_\d+/g, "ref_N"))).toEqual([
      "# Welcome",
      "[ref_N] Form [ref_N] App [ref_N] Missing",
      "Plain words in a paragraph.",
      "- first",
      "- second",
    ]);
    expect(elements.replaceAll(/ref_\d+/g, "ref_N").split("\n")).toEqual([
      '[ref_N] link "Form" /form.html',
      '[ref_N] link "App" /spa.html',
      '[ref_N] link "Missing" /missing.html',
    ]);
  });

  test("[002-click] a ref and a CSS selector are clicked, and the page that it leads to is there", async () => {
    await goto(client, "/index.html");
    const clicked = await call(client, "browser_click", { selector: refOf(await snapshot(client), '"App"') });
    expect(readText(clicked).head).toBe(`browser_click ok: clicked link "App" /spa.html; at ${HOME}/spa.html (App)`);
    await call(client, "browser_click", { selector: "#about" });
    expect(await snapshot(client)).toMatchObject({
      url: `${HOME}/spa/about`,
      text: expect.stringContaining("About view"),
    });
  });

  test("[002-click] an element that is not there fails with the hint", async () => {
    await goto(client, "/index.html");
    for (const selector of ["ref_99999", "#nowhere"]) {
      const failed = await call(client, "browser_click", { selector, timeout_seconds: 1 });
      expect(failed.isError).toBe(true);
      expect(failed.content[0]?.text?.split("\n").slice(0, 2)).toEqual([
        `browser_click failed: element not found (selector="${selector}")`,
        "hint: call browser_snapshot first and use one of the returned refs",
      ]);
    }
  });

  test("[002-type] text goes into a field, in place of what is there or after it, and Enter sends it", async () => {
    await goto(client, "/form.html");
    const page = await snapshot(client);
    await call(client, "browser_type", { selector: refOf(page, '"Notes"'), text: " and more", clear: false });
    await call(client, "browser_type", { selector: refOf(page, '"Editor"'), text: "new" });
    await call(client, "browser_type", { selector: refOf(page, '"Email"'), text: "ada@example.org", submit: true });
    const { text, elements } = await snapshot(client);
    expect(text).toContain(
      "Sent: email=ada%40example.org&password=hunter2&search=&notes=old+text+and+more&country=fr&size=s&volume=30",
    );
    expect(elements).toContain('textbox "Email" value="ada@example.org" required focused');
    expect(text).toContain("new");
  });

  test("[003-US2.1] [003-US2.2] [003-SC-002] [003-FR-003] the open-sandbox names navigate and write a picture under the workspace", async () => {
    expect((await call(client, "browser.navigate", { url: `${HOME}/canvas.html` })).isError).toBeUndefined();
    const taken = await call(client, "browser.screenshot", { path: "/workspace/shots/red.png" });
    expect(taken.structuredContent).toMatchObject({ path: "/workspace/shots/red.png", width: 1280, height: 720 });
    expect(taken.content[1]).toMatchObject({ type: "image", mimeType: "image/png" });
    expect(await pixel(client, "shots/red.png", [100, 50])).toBe("255,0,0");
    expect(await pixel(client, "shots/red.png", [250, 50])).toBe("0,0,255");
  });

  test("[003-FR-007] every tool that takes a path refuses one outside the workspace", async () => {
    const { tools } = await client.listTools();
    const withPath = tools.filter(({ inputSchema }) => Object.hasOwn(inputSchema.properties ?? {}, "path"));
    const names = withPath.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining([...FILE_TOOLS, "browser_pdf", "browser_screenshot"]));
    for (const name of names) {
      for (const path of ["/tmp/out.png", "../out.png", "/etc/out.png"]) {
        const refused = await call(client, name, { ...NEEDED[name], path });
        expect(readText(refused).head).toBe(`${name} failed: ${path}: it is outside the workspace`);
      }
    }
  });
});

test("the five tools are listed with the others, and the extra ones only where they are asked for", async () => {
  const listed = async (toolsets: string[]): Promise<string[]> => {
    const client = await connectStdio(makePlace(), { tools: { toolsets } });
    return (await client.listTools()).tools.map(({ name }) => name).filter((name) => name.startsWith("browser_"));
  };
  const five = ["browser_click", "browser_goto", "browser_screenshot", "browser_snapshot", "browser_type"];
  expect(await listed([])).toEqual(five);
  const extra = "console evaluate history hover pdf press requests scroll select tabs upload wait".split(" ");
  const all = [...five, ...extra.map((name) => `browser_${name}`)];
  expect(await listed(["browser", "browser-extra"])).toEqual(all.toSorted());
});
