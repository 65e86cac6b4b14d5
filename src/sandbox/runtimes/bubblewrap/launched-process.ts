import type { ChildProcess } from "node:child_process";
import { PassThrough, type Readable } from "node:stream";
import { z } from "zod";
import { OwlError } from "../../../errors/owl-error.ts";
import type { InstanceExit } from "../runtime.ts";
import { ARGUMENTS_FD, INFO_FD } from "./bwrap-arguments.ts";
import { GuestStream } from "../guest-stream.ts";

const MAX_INFO_CHARS = 4096;

const infoSchema = z.object({ "child-pid": z.number().int().positive() });

/** A started launcher, with everything it says and how it ends. */
export interface LaunchedProcess {
  readonly child: ChildProcess;
  readonly stream: GuestStream;
  readonly diagnostics: Readable;
  /** The first process inside, as the host numbers it; `undefined` when it came to none. */
  readonly initPid: Promise<number | undefined>;
  readonly end: Promise<Pick<InstanceExit, "code" | "signal">>;
}

/** Must be called in the same turn as the start: what nobody listens to when a child ends, Node throws away. */
export function followChild(child: ChildProcess, args: Buffer): LaunchedProcess {
  const { stdin, stdout, stderr } = child;
  const argsPipe = child.stdio[ARGUMENTS_FD];
  const infoPipe = child.stdio[INFO_FD];
  const isWhole = stdin !== null && stdout !== null && stderr !== null && isWritable(argsPipe) && isReadable(infoPipe);
  if (!isWhole) throw new OwlError("internal", "the sandbox has no streams");
  // It may fail before it has read them: its exit tells.
  argsPipe.on("error", () => undefined);
  argsPipe.end(args);
  return {
    child,
    stream: new GuestStream(stdin, stdout),
    diagnostics: stderr.pipe(new PassThrough()),
    initPid: readInitPid(infoPipe),
    end: childEnd(child),
  };
}

export async function readBounded(stream: Readable, maxChars: number): Promise<string> {
  let text = "";
  for await (const chunk of stream) {
    text += String(chunk);
    if (text.length > maxChars) break;
  }
  return text.slice(0, maxChars);
}

/** bwrap names it when the namespaces exist, and then closes the pipe. */
async function readInitPid(pipe: Readable): Promise<number | undefined> {
  try {
    const info = await readBounded(pipe, MAX_INFO_CHARS);
    return infoSchema.parse(JSON.parse(info))["child-pid"];
  } catch {
    // It ended before it came so far: its exit and what it said tell why.
    return undefined;
  }
}

async function childEnd(child: ChildProcess): Promise<Pick<InstanceExit, "code" | "signal">> {
  return await new Promise((resolve) => {
    child.once("exit", (code, signal) => resolve({ code, signal }));
    // It could not even be started.
    child.once("error", () => {
      if (child.pid === undefined) resolve({ code: null, signal: null });
    });
  });
}

type Pipe = ChildProcess["stdio"][number];

function isWritable(pipe: Pipe): pipe is Extract<Pipe, NodeJS.WritableStream> {
  return pipe !== null && pipe !== undefined && "write" in pipe;
}

function isReadable(pipe: Pipe): pipe is Readable {
  return pipe !== null && pipe !== undefined && "read" in pipe;
}
