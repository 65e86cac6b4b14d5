import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll } from "vitest";
import { call } from "../e2e/sandbox-client.ts";
import { PageOperator } from "../escape/dashboard-lab.ts";
import { DashboardServer, HOSTILE } from "./page-lab.ts";

/** A name that a token, a file and a header can carry. */
export const HOSTILE_NAME = "eve<img src=x onerror=globalThis.owned=1>";
/** Each of these would do more than print: a title, the clipboard, a link, a notification. */
const ESCAPES = String.raw`\033]0;owned\007\033]52;c;b3duZWQ=\007\033]8;;http://127.0.0.1:1/\007a link\033]8;;\007\033]9;owned\007`;

const HANDLER = `import { defineHandler, z } from "owlclaw";
export const greet = defineHandler({
  name: "greet",
  description: ${JSON.stringify(`Greets. ${HOSTILE}`)},
  input: z.object({ name: z.string().describe(${JSON.stringify(HOSTILE)}) }),
  run: ({ name }) => "hello " + name,
});
`;
const SKILL = `---
name: refund
description: ${JSON.stringify(`Pays back. ${HOSTILE}`)}
---
Read me.
`;

export interface Busy {
  readonly server: DashboardServer;
  /** Of a client whose every text is hostile. */
  readonly eve: Client;
  /** What opens her sandbox to her. */
  readonly sandbox: string;
}

/** A server with some life in it, all of it by somebody who wants the operator's browser. */
export async function startBusy(): Promise<Busy> {
  const server = new DashboardServer({
    governance: {
      defaults: { callsPerMinute: 100_000, concurrency: 1000 },
      clients: { "eve*": { monthlyBudget: 1 } },
      tools: { code_run: { cost: { fixed: 0.01 } }, file_write: { confirm: "operator" } },
      rules: [
        {
          id: "no-rm",
          when: 'tool == "shell_exec" && args.command.contains("rm -rf")',
          effect: "deny",
          reason: "use file tools",
        },
      ],
    } as unknown as Readonly<Record<string, unknown>>,
    handlers: { paths: ["./handlers"] },
    skills: { dir: "./skills" },
    sandbox: { network: { allow: ["allowed.example"] } },
  });
  const { folder } = server.place;
  mkdirSync(join(folder, "handlers"));
  writeFileSync(join(folder, "handlers", "greet.ts"), HANDLER);
  writeFileSync(join(folder, "handlers", "broken.ts"), `export const ${HOSTILE.slice(3, 20)}`);
  mkdirSync(join(folder, "skills", "refund"), { recursive: true });
  writeFileSync(join(folder, "skills", "refund", "SKILL.md"), SKILL);
  await server.start();
  afterAll(() => server.stop());
  const eve = await server.client(HOSTILE_NAME, HOSTILE_NAME);
  const created = await call(eve, "sandbox_create");
  const sandbox = String(created.structuredContent?.["session_id"]);
  const quoted = `'${HOSTILE.replaceAll("'", `'\\''`)}'`;
  const command = `printf '${ESCAPES}'; echo ${quoted}; echo ${quoted} >&2; echo ${quoted} > 'a${HOSTILE_NAME}.txt'`;
  await call(eve, "shell_exec", { session_id: sandbox, command });
  await call(eve, "code_run", {
    session_id: sandbox,
    code: `print(${JSON.stringify(HOSTILE)})\n${JSON.stringify(HOSTILE)}`,
  });
  await call(eve, "shell_exec", { session_id: sandbox, command: `rm -rf ${HOSTILE}` }).catch(() => undefined);
  await call(eve, "greet", { name: HOSTILE });
  await beHostileEverywhere(eve, sandbox);
  const root = await PageOperator.byToken(server.origin);
  await root.post("pause", { client: `not ${HOSTILE_NAME}`, reason: HOSTILE });
  return { server, eve, sandbox };
}

/** In the names of a process and of a host, and in the address of a page. */
async function beHostileEverywhere(eve: Client, sandbox: string): Promise<void> {
  const inSandbox = (command: string): Promise<unknown> => call(eve, "shell_exec", { session_id: sandbox, command });
  await inSandbox(`(exec -a '${HOSTILE_NAME}' sleep 100000) > /dev/null 2>&1 &`);
  await inSandbox(
    `exec 3<>/dev/tcp/127.0.0.1/3128; printf 'CONNECT %s:80 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n' '<img/src=x/onerror=globalThis.owned=1>' >&3; head -c 12 <&3`,
  );
  await inSandbox(`curl -s -m 5 http://nowhere.example/ || true`);
  await call(eve, "browser_goto", { session_id: sandbox, url: `file:///workspace/?${HOSTILE}#${HOSTILE}` });
}
