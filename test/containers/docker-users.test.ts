import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { connectHttp, makePlace, Server } from "../e2e/sandbox-client.ts";
import { openInside } from "../escape/sandbox-lab.ts";
import { defineNetworkTest } from "./engine-reach-suite.ts";
import { settingsFor } from "./engine-runtime.ts";
import { describeWithEngine } from "./with-engine.ts";

// Inside they have a number that nobody knows outside.
describeWithEngine(
  "docker",
  (engine) => {
    defineNetworkTest(engine);

    test("a writable volume is warned of, for it may not be writable inside", async () => {
      const place = makePlace();
      const folder = join(place.folder, "shared");
      mkdirSync(folder);
      chownSync(folder, 4321, 4321);
      const server = new Server(place, { sandbox: { ...settingsFor(engine()), volumes: [`${folder}:/data`] } });
      const inside = await openInside(await connectHttp(await server.url()));
      expect(await inside.sh("touch /data/x 2>/dev/null || echo refused")).toBe("refused\n");
      const warning = await server.logged(
        "the engine maps users: a writable volume has to be writable for its user of this number",
      );
      expect(warning).toMatchObject({ level: "warning", uid: 1000, volumes: ["/data"] });
      await server.stop();
    });
  },
  { mapsUsers: true },
);
