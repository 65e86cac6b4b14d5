import type { Readable } from "node:stream";
import { OwlError, toOwlError } from "../../../errors/owl-error.ts";
import { splitAttached } from "./attached-stream.ts";
import type { EngineClient } from "./engine-client.ts";
import { EngineError, isNoRoom } from "./engine-failure.ts";
import { type ContainerHost, makeContainer } from "./make-container.ts";
import { ULIMITS } from "./ulimits.ts";

const TIMEOUT_MS = 60_000;
const MAX_ANSWER_CHARS = 16 * 1024;
const MEMORY_BYTES = 512 * 1024 * 1024;

/** What an image holds, in lines of `name=value`. The argument is the Node to try. */
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

export interface ImageQuestion {
  readonly name: string;
  readonly id: string;
  readonly seccomp: string;
  readonly volumes: ReadonlyArray<{ readonly name: string; readonly folder: string }>;
  /** Tried in place of the image's own. */
  readonly node?: string;
  /** Without: 60 s. */
  readonly timeoutMs?: number;
}

export interface ImageAnswer {
  readonly libc: string;
  readonly python: string;
  readonly node: string;
  readonly nodeVersion: string;
  /** What programs inside said when they failed. */
  readonly complaint: string;
}

/** Starts the image once, confined like a sandbox, and asks what is in it. */
export async function askImage(host: ContainerHost, question: ImageQuestion): Promise<ImageAnswer> {
  const labels = host.ownership.labels("image");
  const id = await makeContainer(host, { json: { ...request(question), Labels: labels } });
  const path = `/containers/${id}`;
  const signal = AbortSignal.timeout(question.timeoutMs ?? TIMEOUT_MS);
  try {
    return await ask(host.engine, path, signal);
  } catch (error) {
    // Whoever asked explains a full disk: it says nothing of the image.
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
  // From here on the signal is nothing to the connection itself.
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
