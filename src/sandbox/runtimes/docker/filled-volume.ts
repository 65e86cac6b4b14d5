import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { OwlError } from "../../../errors/owl-error.ts";
import { labelledSchema } from "./engine-client.ts";
import { EngineError } from "./engine-failure.ts";
import { type ContainerHost, makeContainer } from "./containers.ts";
import { isOrphan, LABELS } from "./ownership.ts";
import { packTar, type TarEntry } from "./tar-archive.ts";

const FOLDER = "/filled";
const MARK = ".owlclaw-complete";
/** A server fills one within seconds; after this time it counts as dead. */
const TURN_TIMEOUT_MS = 60_000;
const POLL_MS = 100;
const UPLOAD_TIMEOUT_MS = 300_000;

interface VolumeContent {
  /** Any image of the engine: the container is never started. */
  readonly id: string;
  readonly kind: "guest" | "node";
  readonly entries: readonly TarEntry[];
}

/**
 * A volume of the engine with these files, shared by all servers that use the engine; its name has a digest of the content. This
 * works on every engine, also on another machine.
 */
export async function provideVolume(host: ContainerHost, content: VolumeContent): Promise<string> {
  const { engine } = host;
  const archive = packTar([...content.entries, { name: MARK, mode: 0o444, content: Buffer.alloc(0) }]);
  const digest = createHash("sha256").update(archive).digest("hex").slice(0, 16);
  const name = `owlclaw-${content.kind}-${digest}`;
  const id = await takeTurn(host, { name, image: content.id });
  const path = `/containers/${id}`;
  try {
    const mark = { path: `${FOLDER}/${MARK}` };
    const found = await engine.call({ method: "HEAD", path: `${path}/archive`, query: mark, accept: [404] });
    if (found.status !== 404) return name;
    const query = { path: FOLDER };
    await engine.call({ method: "PUT", path: `${path}/archive`, query, tar: archive, timeoutMs: UPLOAD_TIMEOUT_MS });
    return name;
  } finally {
    await remove(host, id);
  }
}

/** The container through which the volume is filled has a fixed name: only one server at a time can make it. */
async function takeTurn(host: ContainerHost, options: { name: string; image: string }): Promise<string> {
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
    Labels: host.ownership.labels("guest"),
    NetworkDisabled: true,
    HostConfig: { NetworkMode: "none", LogConfig: { Type: "none" }, Mounts: [volume] },
  };
  for (const deadline = Date.now() + TURN_TIMEOUT_MS; ; await delay(POLL_MS)) {
    const fill = `${name}-fill`;
    const id = await makeContainer(host, { json, name: fill }).catch(unlessTaken);
    if (id !== undefined) return id;
    const left = Date.now() < deadline ? await containerOfDeadServer(host, fill) : fill;
    if (left !== undefined) await remove(host, left);
    if (Date.now() > deadline + TURN_TIMEOUT_MS) {
      throw new OwlError(
        "sandbox_unavailable",
        `the volume ${name} cannot be filled: another server fills it for too long`,
      );
    }
  }
}

function unlessTaken(error: unknown): undefined {
  if (!(error instanceof EngineError && error.status === 409)) throw error;
}

/** The id of the container when a dead server of this data folder left it. Whether other servers are alive is not known. */
async function containerOfDeadServer({ engine, ownership }: ContainerHost, name: string): Promise<string | undefined> {
  const { json } = await engine.call({ method: "GET", path: `/containers/${name}/json`, accept: [404] });
  const found = labelledSchema.safeParse(json);
  if (!found.success) return undefined;
  const { Id: id, Config: config } = found.data;
  return config.Labels[LABELS.data] === ownership.dataId && isOrphan(config.Labels) ? id : undefined;
}

async function remove({ engine, own }: ContainerHost, id: string): Promise<void> {
  own.delete(id);
  const query = { force: "1", v: "1" };
  await engine.call({ method: "DELETE", path: `/containers/${id}`, query, accept: [404, 409] });
}
