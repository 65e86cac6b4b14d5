import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { OwlError } from "../../errors/owl-error.ts";
import { createdSchema } from "./engine-answers.ts";
import type { EngineClient } from "./engine-client.ts";
import { LABELS } from "./ownership.ts";
import { packTar, type TarEntry } from "./tar-archive.ts";

const FOLDER = "/filled";
const MARK = ".owlclaw-complete";
/** A server that fills one takes seconds; after this it is dead. */
const TURN_TIMEOUT_MS = 60_000;
const POLL_MS = 100;
const UPLOAD_TIMEOUT_MS = 300_000;

export interface VolumeContent {
  /** Any image of the engine: nothing of it is run. */
  readonly id: string;
  readonly kind: "guest" | "node";
  readonly entries: readonly TarEntry[];
}

/**
 * A volume of the engine that holds these files, for all servers that use the engine; its name says what is in it. Files
 * reach every engine this way, one on another machine included.
 */
export async function provideVolume(engine: EngineClient, content: VolumeContent): Promise<string> {
  const archive = packTar([...content.entries, { name: MARK, mode: 0o444, content: Buffer.alloc(0) }]);
  const digest = createHash("sha256").update(archive).digest("hex").slice(0, 16);
  const name = `owlclaw-${content.kind}-${digest}`;
  const path = await takeTurn(engine, { name, image: content.id });
  try {
    const mark = { path: `${FOLDER}/${MARK}` };
    const found = await engine.call({ method: "HEAD", path: `${path}/archive`, query: mark, accept: [404] });
    if (found.status !== 404) return name;
    const query = { path: FOLDER };
    await engine.call({ method: "PUT", path: `${path}/archive`, query, tar: archive, timeoutMs: UPLOAD_TIMEOUT_MS });
    return name;
  } finally {
    await remove(engine, path);
  }
}

/** The container through which it is filled has a fixed name, so that one server fills it at a time. */
async function takeTurn(engine: EngineClient, options: { name: string; image: string }): Promise<string> {
  const { name, image } = options;
  const volume = {
    Type: "volume",
    Source: name,
    Target: FOLDER,
    VolumeOptions: { NoCopy: true, Labels: { [LABELS.kind]: "guest" } },
  };
  const json = {
    Image: image,
    Entrypoint: ["/bin/true"],
    Labels: { [LABELS.kind]: "guest" },
    NetworkDisabled: true,
    HostConfig: { NetworkMode: "none", LogConfig: { Type: "none" }, Mounts: [volume] },
  };
  for (const deadline = Date.now() + TURN_TIMEOUT_MS; ; await delay(POLL_MS)) {
    const call = { method: "POST", path: "/containers/create", query: { name: `${name}-fill` }, json } as const;
    const { status, json: answer } = await engine.call({ ...call, accept: [409] });
    if (status !== 409) return `/containers/${createdSchema.parse(answer).Id}`;
    if (Date.now() < deadline) continue;
    await remove(engine, `/containers/${name}-fill`);
    if (Date.now() > deadline + TURN_TIMEOUT_MS) {
      throw new OwlError("sandbox_unavailable", `the volume ${name} cannot be filled: its turn does not come`);
    }
  }
}

async function remove(engine: EngineClient, path: string): Promise<void> {
  await engine.call({ method: "DELETE", path, query: { force: "1", v: "1" }, accept: [404, 409] });
}
