import { CASES, CODE, interleave, type SandboxCase } from "./sandbox-case.ts";
import { spawnBash, spawnBubblewrap } from "./spawn-time.ts";
import type { ToolClient } from "./tool-client.ts";

/** Node compiles what runs often: a server in service is past that. */
const WARMUP_CALLS = 1000;
const WARMUP_ROUNDS = 50;
const KILOBYTE = { path: "kilobyte.txt" };

type Session = Readonly<{ session_id: unknown }>;

/** Calls into one sandbox that is there, beside an echo and processes started by the benchmark itself. */
export async function measureCalls(client: ToolClient, rounds: number): Promise<readonly SandboxCase[]> {
  const session = await openSession(client);
  const timed = async (tool: string, args: Readonly<Record<string, unknown>>): Promise<number> =>
    (await client.call(tool, args)).ms;
  const echo = (): Promise<number> => timed("echo", { text: "hello" });
  for (let call = 0; call < WARMUP_CALLS; call += 1) await echo();
  const cases = await interleave(
    {
      [CASES.echo]: echo,
      [CASES.python]: () => timed("code_run", { ...session, code: CODE, language: "python" }),
      [CASES.node]: () => timed("code_run", { ...session, code: "console.log(6 * 7)", language: "node" }),
      [CASES.shell]: () => timed("shell_exec", { ...session, command: "true" }),
      [CASES.read]: () => readKilobyte(client, session),
      [CASES.bash]: spawnBash,
      [CASES.bubblewrap]: spawnBubblewrap,
    },
    { rounds, warmupRounds: WARMUP_ROUNDS },
  );
  await client.call("sandbox_destroy", session);
  return cases;
}

export interface CrowdOptions {
  /** Talks to a server without any sandbox. */
  readonly lonely: ToolClient;
  /** Talks to a server with many of them. */
  readonly crowded: ToolClient;
  readonly sessions: readonly unknown[];
  readonly rounds: number;
}

/** The same call into a sandbox that is alone and into one among many: what it costs must not depend on their number. */
export async function measureCrowd(options: CrowdOptions): Promise<readonly SandboxCase[]> {
  const { lonely, crowded, sessions, rounds } = options;
  const alone = await openSession(lonely);
  const many = sessions.map((id): Session => ({ session_id: id }));
  for (const session of many) await writeKilobyte(crowded, session);
  let turn = 0;
  const cases = await interleave(
    {
      [CASES.alone]: () => readKilobyte(lonely, alone),
      [CASES.crowded]: () => readKilobyte(crowded, many[0]),
      [CASES.inTurn]: () => readKilobyte(crowded, many[turn++ % many.length]),
    },
    { rounds, warmupRounds: 2 * many.length },
  );
  await lonely.call("sandbox_destroy", alone);
  return cases;
}

async function openSession(client: ToolClient): Promise<Session> {
  const { fields } = await client.call("code_run", { code: CODE });
  const session = { session_id: fields["session_id"] };
  await writeKilobyte(client, session);
  return session;
}

async function writeKilobyte(client: ToolClient, session: Session): Promise<void> {
  await client.call("file_write", { ...session, ...KILOBYTE, content: "x".repeat(1024) });
}

async function readKilobyte(client: ToolClient, session: Session | undefined): Promise<number> {
  return (await client.call("file_read", { ...session, ...KILOBYTE })).ms;
}
