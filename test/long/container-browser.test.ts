import { expect, test } from "vitest";
import { engineLab } from "../containers/engine-lab.ts";
import { describeWithEngine } from "../containers/with-engine.ts";
import { openInside, textOf } from "../escape/sandbox-lab.ts";
import { engineImage } from "../services/engine-image.ts";

// Here, since an image with Chromium takes minutes to make and has a gigabyte.
for (const kind of ["docker", "podman"] as const)
  describeWithEngine(kind, (engine) => {
    const { open } = engineLab(engine);

    test("the browser works in a container whose image has Chromium, under the same rules", async () => {
      const { cli, image } = engine();
      await cli("import", await engineImage(["chromium"]), "chromium");
      const allow = ["allowed.test"];
      const { server, client } = await open({ image: image.replace("base", "chromium"), network: { allow } });
      const inside = await openInside(client);
      await inside.call("file_write", { path: "page.html", content: "<title>Boxed</title><button>Press</button>" });
      await inside.call("shell_exec", { command: "exec python3 -m http.server 8000", background: true });
      await inside.sh("until (exec 3<> /dev/tcp/127.0.0.1/8000) 2> /dev/null; do sleep 0.1; done");
      const goto = async (url: string): Promise<string> =>
        textOf(await inside.call("browser_goto", { url, timeout_seconds: 60 })).split("\n")[0] ?? "";
      const page = "http://localhost:8000/page.html";
      expect(await goto(page)).toBe(`browser_goto ok: ${page} (Boxed), status 200`);
      expect((await inside.call("browser_snapshot")).structuredContent).toMatchObject({
        elements: '[ref_1] button "Press"',
      });
      expect((await inside.call("browser_screenshot")).content[1]).toMatchObject({ type: "image" });
      expect(await goto("http://refused.test/")).toContain("egress refused: refused.test:80 is not in network.allow");
      expect(await goto("file:///etc/passwd")).toContain("it is outside the workspace");
      await server.stop();
    });
  });
