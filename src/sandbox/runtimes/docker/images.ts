import { readFile } from "node:fs/promises";
import { z } from "zod";
import { OwlError, toOwlError } from "../../../errors/owl-error.ts";
import { GUEST_FOLDER, NODE_FOLDER } from "../instance-mounts.ts";
import type { EngineFacts } from "./engine-facts.ts";
import { EngineError, explainEngineError, imageMissing, isNoRoom } from "./engine-failure.ts";
import { provideVolume } from "./filled-volume.ts";
import { type ContainerHost, makeContainer, ULIMITS } from "./containers.ts";
import { tarEntriesOf } from "./tar-archive.ts";
import type { Readable } from "node:stream";
import { splitAttached } from "./attached-stream.ts";
import type { EngineClient } from "./engine-client.ts";

const DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/** The oldest Node that runs the guest. */
const MIN_NODE: readonly [number, number] = [20, 19];

const inspectSchema = z.object({
  Id: z.string(),
  Config: z.object({ Env: z.array(z.string()).nullish(), Healthcheck: z.unknown().optional() }).nullish(),
});
const QUESTION_TIMEOUT_MS = 60_000;
const MAX_ANSWER_CHARS = 16 * 1024;
const MEMORY_BYTES = 512 * 1024 * 1024;

interface Inspected {
  readonly id: string;
  readonly config: z.infer<typeof inspectSchema>["Config"];
}

/** An image that sandboxes can be started from, and the volumes for what it lacks. */
export interface SandboxImage {
  readonly name: string;
  readonly id: string;
  /** The Node that runs the guest, as seen inside. */
  readonly node: string;
  readonly python: string;
  /** The PATH inside. */
  readonly path: readonly string[];
  /** Variables that the image itself sets. */
  readonly variables: readonly string[];
  /** Volumes that are mounted read-only in every container. */
  readonly volumes: ReadonlyArray<{ readonly name: string; readonly folder: string }>;
  readonly hasHealthcheck: boolean;
}

interface ImagesOptions {
  readonly host: ContainerHost;
  readonly facts: EngineFacts;
  /** Folder of the host with `guest.mjs` and the Python drivers. */
  readonly guestFolder: string;
  readonly seccomp: string;
}

/** Inspects each image once, by its id: an image that replaces another under its name is inspected again. */
export class Images {
  readonly #options: ImagesOptions;
  readonly #known = new Map<string, Promise<SandboxImage>>();

  constructor(options: ImagesOptions) {
    this.#options = options;
  }

  async get(name: string): Promise<SandboxImage> {
    try {
      return await this.#get(name);
    } catch (error) {
      throw explainEngineError(error, name);
    }
  }

  async #get(name: string): Promise<SandboxImage> {
    const { engine } = this.#options.host;
    const path = `/images/${encodeURIComponent(name)}/json`;
    const { json } = await engine.call({ method: "GET", path }).catch((error: unknown) => {
      throw error instanceof EngineError && error.status === 404 ? imageMissing(name, error) : error;
    });
    const { Id: id, Config: config } = inspectSchema.parse(json);
    await this.#forgetWithoutVolumes(id);
    const known = this.#known.get(id) ?? this.#look(name, { id, config });
    this.#known.set(id, known);
    try {
      return await known;
    } catch (error) {
      this.#known.delete(id);
      throw error;
    }
  }

  /** For a volume that was removed meanwhile the engine would make an empty one and report no error. */
  async #forgetWithoutVolumes(id: string): Promise<void> {
    const { engine } = this.#options.host;
    const known = this.#known.get(id);
    const volumes = (await known?.catch(() => undefined))?.volumes ?? [];
    const answers = await Promise.all(
      volumes.map(({ name }) => engine.call({ method: "GET", path: `/volumes/${name}`, accept: [404] })),
    );
    // Of several concurrent calls, one inspects the image again.
    if (answers.some(({ status }) => status === 404) && this.#known.get(id) === known) this.#known.delete(id);
  }

  async #look(name: string, { id, config }: Inspected): Promise<SandboxImage> {
    const { host, guestFolder, seccomp } = this.#options;
    const env = config?.Env ?? [];
    const hasHealthcheck = config?.Healthcheck !== undefined && config.Healthcheck !== null;
    const variables = env.map((line) => line.split("=", 1)[0] ?? "");
    const path = (env.find((line) => line.startsWith("PATH="))?.slice("PATH=".length) ?? DEFAULT_PATH).split(":");
    const guest = await provideVolume(host, { id, entries: await tarEntriesOf(guestFolder), kind: "guest" });
    const volumes = [{ name: guest, folder: GUEST_FOLDER }];
    const answer = await askImage(host, { name, id, seccomp, volumes });
    refuseUnfit(name, answer);
    const image = { name, id, python: answer.python, variables, hasHealthcheck };
    if (isEnough(answer.nodeVersion)) return { ...image, node: answer.node, path, volumes };
    const withNode = [...volumes, { name: await this.#nodeVolume(name, id), folder: NODE_FOLDER }];
    const node = `${NODE_FOLDER}/node`;
    const again = await askImage(host, { name, id, seccomp, volumes: withNode, node });
    if (!isEnough(again.nodeVersion)) throw unfit(name, `Node of this machine does not run in it: ${again.complaint}`);
    return { ...image, node, path: [NODE_FOLDER, ...path], volumes: withNode };
  }

  async #nodeVolume(name: string, id: string): Promise<string> {
    const { host, facts } = this.#options;
    if (process.platform !== "linux" || process.arch !== facts.architecture) {
      throw unfit(name, "it has no Node 20.19 or newer, and that of this machine is for another kind of machine");
    }
    const content = await readFile(process.execPath);
    const entries = [{ name: "node", mode: 0o755, content }];
    return await provideVolume(host, { id, entries, kind: "node" });
  }
}

function refuseUnfit(name: string, { libc, python, complaint }: ImageAnswer): void {
  if (libc === "musl") throw unfit(name, "it is built on musl (Alpine), on which the guest's Node does not run");
  if (libc === "") throw unfit(name, `nothing in it could be run: ${complaint}`);
  if (python === "") throw unfit(name, "it has no python3");
}

function unfit(name: string, reason: string): OwlError {
  return new OwlError("sandbox_unavailable", `the image ${name} cannot be used: ${reason}`, {
    hint: "Build one on Debian, Ubuntu or another system with glibc, with sh, python3 and bash; deploy/docker/sandbox.Dockerfile is a start.",
  });
}

function isEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  const [minMajor, minMinor] = MIN_NODE;
  return major > minMajor || (major === minMajor && minor >= minMinor);
}

/** Prints what an image has, as lines of `name=value`. The argument is the Node to try. */
const QUESTION = `
libc=other
for file in /lib64/ld-linux-* /lib/ld-linux-*; do [ -e "$file" ] && libc=glibc; done
if [ $libc = other ]; then for file in /lib/ld-musl-*; do [ -e "$file" ] && libc=musl; done; fi
node=\${1:-$(command -v node)}
echo "libc=$libc"
echo "python=$(command -v python3)"
echo "node=$node"
[ -n "$node" ] && echo "nodeVersion=$("$node" --version)"
exit 0
`;

interface ImageQuestion {
  readonly name: string;
  readonly id: string;
  readonly seccomp: string;
  readonly volumes: ReadonlyArray<{ readonly name: string; readonly folder: string }>;
  /** Tried instead of the image's Node. */
  readonly node?: string;
  /** Default: 60 s. */
  readonly timeoutMs?: number;
}

interface ImageAnswer {
  readonly libc: string;
  readonly python: string;
  readonly node: string;
  readonly nodeVersion: string;
  /** The stderr of programs inside. */
  readonly complaint: string;
}

/** Starts the image once, confined like a sandbox, and reads what it has. */
export async function askImage(host: ContainerHost, question: ImageQuestion): Promise<ImageAnswer> {
  const labels = host.ownership.labels("image");
  const id = await makeContainer(host, { json: { ...request(question), Labels: labels } });
  const path = `/containers/${id}`;
  const signal = AbortSignal.timeout(question.timeoutMs ?? QUESTION_TIMEOUT_MS);
  try {
    return await ask(host.engine, path, signal);
  } catch (error) {
    // The caller explains a full disk, which is not the fault of the image.
    if (!signal.aborted && (!(error instanceof EngineError) || isNoRoom(error.message))) throw error;
    const reason = signal.aborted ? "it does not answer" : toOwlError(error).message;
    throw new OwlError("sandbox_unavailable", `the image ${question.name} cannot be started: ${reason}`, {
      hint: "The image must have /bin/sh, and the engine must be able to start containers: try `docker run --rm --network none IMAGE true`.",
      retryable: signal.aborted,
      cause: error,
    });
  } finally {
    host.own.delete(id);
    await host.engine.call({ method: "DELETE", path, query: { force: "1", v: "1" }, accept: [404, 409] });
  }
}

async function ask(engine: EngineClient, path: string, signal: AbortSignal): Promise<ImageAnswer> {
  const query = { stream: "1", stdout: "1", stderr: "1" };
  const socket = await engine.hijack({ path: `${path}/attach`, query, signal });
  const { stream, diagnostics } = splitAttached(socket);
  // `hijack` uses the signal only until the connection is upgraded.
  signal.addEventListener("abort", () => socket.destroy(), { once: true });
  await engine.call({ method: "POST", path: `${path}/start`, signal });
  const [said, complaint] = await Promise.all([readText(stream), readText(diagnostics)]);
  signal.throwIfAborted();
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, "m").exec(said)?.[1] ?? "";
  const facts = { libc: value("libc"), python: value("python"), node: value("node") };
  return { ...facts, nodeVersion: value("nodeVersion"), complaint: complaint.trim().slice(0, 300) };
}

function request({ id, seccomp, volumes, node = "" }: ImageQuestion): Record<string, unknown> {
  return {
    Image: id,
    User: "65534:65534",
    Entrypoint: ["/bin/sh", "-c", QUESTION, "sh", node],
    Cmd: [],
    AttachStdout: true,
    AttachStderr: true,
    NetworkDisabled: true,
    HostConfig: {
      NetworkMode: "none",
      ReadonlyRootfs: true,
      CapDrop: ["ALL"],
      SecurityOpt: ["no-new-privileges", `seccomp=${seccomp}`],
      LogConfig: { Type: "none" },
      Memory: MEMORY_BYTES,
      PidsLimit: 64,
      Ulimits: ULIMITS,
      Mounts: volumes.map(({ name, folder }) => ({ Type: "volume", Source: name, Target: folder, ReadOnly: true })),
    },
  };
}

async function readText(stream: Readable): Promise<string> {
  let text = "";
  for await (const chunk of stream) text = (text + String(chunk)).slice(0, MAX_ANSWER_CHARS);
  return text;
}
