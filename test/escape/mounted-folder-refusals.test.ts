import { linkSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { runCli } from "../integration/cli-process.ts";
import { temporaryFolder } from "../unit/config/temporary-folder.ts";

const INSTALLATION = resolve(import.meta.dirname, "../..");

interface Refused {
  /** What is done in the project before. */
  readonly prepare?: (project: string) => void;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly volumes: (project: string) => readonly string[];
  readonly reason: RegExp;
}

const handlers = (...paths: string[]): Record<string, unknown> => ({ handlers: { paths } });
const folder = (name: string) => (project: string) => mkdirSync(join(project, name), { recursive: true });

const CASES: Readonly<Record<string, Refused>> = {
  "the handlers' own folder": {
    prepare: folder("handlers"),
    config: handlers("./handlers"),
    volumes: (project) => [join(project, "handlers")],
    reason: /sandboxes could change handlers.paths/,
  },
  "a folder whose files are handlers": {
    config: handlers("./*.ts"),
    volumes: (project) => [project],
    reason: /sandboxes could change handlers.paths/,
  },
  "a folder below the handlers'": {
    prepare: folder("handlers/data"),
    config: handlers("./handlers"),
    volumes: (project) => [join(project, "handlers/data:/data")],
    reason: /sandboxes could change handlers.paths/,
  },
  "a folder in which handlers are still to come": {
    config: handlers("./handlers"),
    volumes: (project) => [project],
    reason: /does not exist, and a sandbox could make it/,
  },
  "a folder in which a link leads to the handlers": {
    prepare: (project) => {
      const elsewhere = temporaryFolder();
      symlinkSync(elsewhere, join(project, "handlers"));
    },
    config: handlers("./handlers"),
    volumes: (project) => [project],
    reason: /is a link that sandboxes could change, and leads to handlers.paths/,
  },
  "a folder in which the policy has a second name": {
    prepare: (project) => {
      writeFileSync(join(project, "policy.yaml"), "{}\n");
      linkSync(join(project, "policy.yaml"), join(project, "notes.yaml"));
    },
    config: { governance: { policyFile: "./policy.yaml" } },
    volumes: (project) => [project],
    reason: /has another name, by which a sandbox could change it/,
  },
  "a folder in which a skill has a second name": {
    prepare: (project) => {
      mkdirSync(join(project, "skills/shop/refund"), { recursive: true });
      writeFileSync(join(project, "skills/shop/refund/SKILL.md"), "Ask first.\n");
      linkSync(join(project, "skills/shop/refund/SKILL.md"), join(project, "notes.md"));
    },
    config: { skills: { dir: "./skills" } },
    volumes: (project) => [project],
    reason: /SKILL.md \(skills.dir\) has another name, by which a sandbox could change it/,
  },
  "a folder in which a key has a second name, even read-only": {
    prepare: (project) => {
      mkdirSync(join(project, "keys"));
      writeFileSync(join(project, "keys/a.key"), "secret");
      linkSync(join(project, "keys/a.key"), join(project, "notes"));
    },
    config: { ledger: { keyFolder: "./keys" } },
    volumes: (project) => [`${project}:/data:ro`],
    reason: /a.key \(ledger.keyFolder\) has another name, by which a sandbox could read it/,
  },
  "a folder inside another that sandboxes may write": {
    prepare: folder("data"),
    volumes: (project) => [project, join(project, "data:/data")],
    reason: /they could put a link to another folder in its place/,
  },
  "a read-only folder inside another that sandboxes may write": {
    prepare: folder("data"),
    volumes: (project) => [project, join(project, "data:/data:ro")],
    reason: /they could put a link to another folder in its place/,
  },
  "the machine's programs": {
    volumes: () => ["/usr/local:/data"],
    reason: /sandboxes could change programs of this machine/,
  },
  "OwlClaw's installation": {
    volumes: () => [`${INSTALLATION}/src:/data`],
    reason: /sandboxes could change OwlClaw's installation/,
  },
  "keys, even read-only": {
    prepare: folder("keys/old"),
    config: { ledger: { keyFolder: "./keys" } },
    volumes: (project) => [join(project, "keys/old:/data:ro")],
    reason: /sandboxes could read ledger.keyFolder/,
  },
  "the log's folder": {
    config: { logging: { file: "./server.log" } },
    volumes: (project) => [project],
    reason: /sandboxes could change logging.file/,
  },
  "a folder that templates with and without a network may write": {
    config: { sandbox: { network: { templates: { node: ["example.com"] } } } },
    volumes: (project) => [project],
    reason: /some templates have a network and some have none/,
  },
};

test.each(Object.entries(CASES))("%s is not mounted: the start says why, and what to do", async (name, refused) => {
  const cwd = temporaryFolder();
  refused.prepare?.(cwd);
  const { sandbox = {}, ...config } = refused.config ?? {};
  const root = join(temporaryFolder(), "data");
  const text = JSON.stringify({
    ...config,
    sandbox: { root, volumes: refused.volumes(cwd), ...(sandbox as object) },
  });
  const file = join(temporaryFolder({ "server.yaml": "" }), "server.yaml");
  // The file is elsewhere, and its paths are meant from the project.
  writeFileSync(file, text.replaceAll('"./', `"${cwd}/`));
  // Both read the configuration in the same way.
  const isFirst = name === Object.keys(CASES)[0];
  for (const command of [["start"], ...(isFirst ? [["config", "validate"]] : [])]) {
    const { code, err } = await runCli(["mcp-server", ...command, "--config", file], { cwd });
    expect({ code, err }).toEqual({ code: 2, err: expect.stringMatching(refused.reason) });
    expect(err).toContain("sandbox.volumes");
    expect(err).toContain("fix:");
  }
});
