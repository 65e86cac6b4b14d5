import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { call, connectHttp, makePlace, type Place, Server, type Settings } from "../e2e/sandbox-client.ts";
import { type Inside, openInside, textOf } from "./sandbox-lab.ts";
import type { TestRuntime } from "./test-runtime.ts";

const SECRET = "not-for-sandboxes";
const PWN = 'export function pwn(): string { return "owned"; }\n';

function defined(name: string, body: string): string {
  const input = '{ type: "object", properties: { id: { type: "string" } } }';
  return `import { defineHandler } from "owlclaw";\nexport const tool = defineHandler({ name: "${name}", description: "Finds it.", input: ${input}, async run({ id }) { ${body} } });\n`;
}

/** What a user's project has in it, as paths below its folder. */
const FILES: Readonly<Record<string, string>> = {
  "package.json": '{ "type": "module" }\n',
  // A plain function would start the compiler with every server.
  "handlers/orders.ts": defined("order_find", "return `order ${id}`;"),
  "rules/policy.yaml": "defaults: { callsPerMinute: 100000, concurrency: 1000 }\n",
  "skills/shop/refund/SKILL.md": "---\nname: refund\ndescription: Pays money back.\n---\nAsk first.\n",
  "ledger-keys/note": SECRET,
  "src/app.py": "print('hello')\n",
};

const SETTINGS: Settings = {
  handlers: { paths: ["./handlers"] },
  skills: { dir: "./skills" },
  governance: { policyFile: "./rules/policy.yaml" },
  ledger: { keyFolder: "./ledger-keys" },
};

/** A server that was started in a project, with `--mount .`: what it trusts in there stays its own. */
export function defineMountedFolderSuite(runtime: TestRuntime): void {
  let place: Place;
  const open = async (
    settings: Settings = SETTINGS,
    sandbox: Readonly<Record<string, unknown>> = {},
  ): Promise<Server> =>
    new Server(
      place,
      { ...settings, sandbox: { volumes: ["."], maxPerPrincipal: 50, ...runtime.settings(), ...sandbox } },
      userEnvironment(place),
    );

  describe("in a project that is mounted", () => {
    let server: Server;
    let client: Client;
    let inside: Inside;
    beforeAll(async () => {
      place = makeProject(runtime);
      server = await open();
      client = await connectHttp(await server.url());
      inside = await openInside(client);
    });

    const paths = [
      "handlers/orders.ts",
      "rules/policy.yaml",
      "skills/shop/refund/SKILL.md",
      "mcp-server.yaml",
      "package.json",
    ];
    test.each(paths)("a sandbox reads %s, and can neither change, replace nor remove it", async (path) => {
      const before = await read(place, path);
      const seen = await inside.sh(`
        cd /workspace; cat ${path} > /tmp/seen && echo read
        echo 'governance: {}' >> ${path} && echo written
        rm -f ${path} && echo removed
        mv ${path} /tmp/taken && echo moved
        echo x > /tmp/new; mv -f /tmp/new ${path} && echo replaced
        ln -f /tmp/seen ${path} && echo linked; ln ${path} other-name && echo linked
        chmod 777 ${path} && echo opened; truncate -s 0 ${path} && echo emptied`);
      expect(seen.trim()).toBe("read");
      expect(await read(place, path)).toBe(before);
    });

    test("it cannot add a handler, a skill, a package or another configuration", async () => {
      const seen = await inside.sh(`
        cd /workspace
        echo '${PWN.trim()}' > handlers/pwn.ts && echo handler
        mkdir handlers/more && echo handlers
        mkdir -p skills/shop/evil && echo skill
        mkdir -p node_modules/zod && echo package
        config=$(ls config-*.yaml); echo '{}' > $config && echo config; rm -f $config && echo removed`);
      expect(seen).toBe("");
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toContain("order_find");
      expect(tools.map(({ name }) => name)).not.toContain("pwn");
    });

    test("it cannot move the folders above what is protected, and can write in those", async () => {
      const seen = await inside.sh(`
        cd /workspace
        for folder in handlers rules skills ledger-keys node_modules; do mv $folder $folder-taken && echo moved $folder; done
        rm -rf rules; mkdir rules && echo made
        mv rules/policy.yaml rules/old && echo moved policy
        echo note > rules/note && echo noted`);
      expect(seen).toBe("noted\n");
      expect(readFileSync(join(place.folder, "rules/note"), "utf8")).toBe("note\n");
    });

    test("keys are not even seen", async () => {
      expect(await inside.sh(`cd /workspace; ls ledger-keys; cat ledger-keys/*; grep -rs ${SECRET} . ; true`)).toBe("");
      expect(readdirSync(join(place.folder, "ledger-keys")).length).toBeGreaterThan(1);
    });

    test("everything else in the project is its own, and belongs to the project's owner", async () => {
      await inside.call("file_write", { path: "src/new.py", content: "print(1)\n" });
      expect(await inside.sh("cd /workspace; mkdir -p build/out; mv src/app.py build/out/; cat build/out/app.py")).toBe(
        "print('hello')\n",
      );
      expect(readFileSync(join(place.folder, "src/new.py"), "utf8")).toBe("print(1)\n");
      expect(existsSync(join(place.folder, "build/out/app.py"))).toBe(true);
    });

    test("a tool says that a protected file is read-only", async () => {
      const refused = await inside.call("file_write", { path: "handlers/pwn.ts", content: PWN });
      expect(refused.isError).toBe(true);
      expect(textOf(refused)).toMatch(/read-only/i);
      const replaced = await inside.call("file_write", { path: "mcp-server.yaml", content: "governance: {}\n" });
      expect(replaced.isError).toBe(true);
    });

    test("a handler that imports code which sandboxes may write is not loaded", async () => {
      await inside.sh("cd /workspace; mkdir -p lib; echo 'export const price = 1;' > lib/price.ts");
      write(
        place,
        "handlers/price.ts",
        'import { price } from "../lib/price.ts";\n/** A price. */\nexport function price_of(): number {\n  return price;\n}\n',
      );
      await vi.waitFor(
        () => {
          expect(server.log.map((line) => JSON.stringify(line)).join("\n")).toContain("sandboxes may write");
        },
        { timeout: 20_000 },
      );
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).not.toContain("price_of");
    });
  });

  const IMPORTS = [
    'import { price } from "../lib/price.ts";',
    'import { price } from "../lib";',
    'import { price } from "..";',
    'import { price } from "#lib/price";',
    'import { price } from "project/price";',
    'import { price } from "linked";',
    'import { price } from /* here */ "../lib/price.ts";',
    "const { price } = await import(`../lib/price.ts`);",
    'const later = () => import("../lib/not-there-yet.ts"); const price = 1;',
    'import { createRequire } from "node:module"; const { price } = createRequire(import.meta.url)("../lib/price.cjs");',
  ];
  test("no handler is loaded whose code imports what sandboxes may write, however it says so", async () => {
    place = makeProject(runtime);
    write(place, "package.json", '{ "name": "project", "type": "module", "exports": { "./price": "./lib/price.ts" } }');
    write(place, "lib/price.ts", "export const price = 1;\n");
    mkdirSync(join(place.folder, "node_modules"), { recursive: true });
    symlinkSync("../lib", join(place.folder, "node_modules/linked"));
    for (const [number, line] of IMPORTS.entries()) {
      const handler = `/** A price. */\nexport function price_${number}(): number {\n  return price;\n}\n`;
      write(place, `handlers/price-${number}.ts`, `${line}\n${handler}`);
    }
    const server = await open();
    const { tools } = await (await connectHttp(await server.url())).listTools();
    const handlers = tools.map(({ name }) => name).filter((name) => /^(order|price)_/.test(name));
    expect(handlers).toEqual(["order_find"]);
    const refused = server.log.filter(({ message }) => message === "handler file cannot be used");
    const notLoaded = refused.map((line) => JSON.stringify(line)).filter((line) => line.includes("it is not loaded"));
    for (const number of IMPORTS.keys())
      expect(notLoaded.filter((line) => line.includes(`price-${number}.ts`))).toHaveLength(1);
    await server.stop();
  });

  const PWNED = "the sandbox's code";
  const importing = (tool: string, name: string): string => defined(tool, `return (await import("${name}")).price;`);
  /** Handlers of a project, and the file that a sandbox writes later. */
  const REACHED: Readonly<
    Record<string, { readonly files: Readonly<Record<string, string>>; readonly written: string }>
  > = {
    by_package: {
      files: {
        "handlers/by-package.ts": importing("by_package", "outer"),
        "node_modules/outer/package.json":
          '{ "type": "module", "main": "index.js", "dependencies": { "linked": "*" } }',
        "node_modules/outer/index.js": 'export { price } from "linked";\n',
      },
      written: "lib/index.js",
    },
    by_link: { files: { "handlers/by-link.ts": importing("by_link", "./linked/late.js") }, written: "lib/late.js" },
    by_python: {
      files: {
        "handlers/by_python.py":
          'from owlclaw import handler\n\n@handler\ndef by_python() -> str:\n    """A price."""\n    import linked.late\n    return linked.late.price\n',
      },
      written: "lib/late.py",
    },
  };
  test("no handler reaches what a sandbox writes: by a package that imports a package of the workspace, by a link to a folder in which the file is made later, or by such a link in Python", async () => {
    place = makeProject(runtime);
    for (const { files } of Object.values(REACHED))
      for (const [path, text] of Object.entries(files)) write(place, path, text);
    write(place, "lib/package.json", '{ "name": "linked", "type": "module", "main": "index.js" }');
    mkdirSync(join(place.folder, "node_modules"), { recursive: true });
    symlinkSync("../lib", join(place.folder, "node_modules/linked"));
    symlinkSync("../lib", join(place.folder, "handlers/linked"));
    const server = await open();
    const client = await connectHttp(await server.url());
    const inside = await openInside(client);
    const line = `price = "${PWNED}"`;
    for (const [tool, { written }] of Object.entries(REACHED)) {
      const content = written.endsWith(".py") ? line : `export const ${line};`;
      await inside.call("file_write", { path: written, content });
      const answer = await call(client, tool).then(textOf, String);
      expect(answer).not.toContain(PWNED);
      expect(answer).toContain("there is no tool named");
    }
    const refused = server.log.filter(({ message }) => message === "handler file cannot be used");
    const told = refused.map((each) => JSON.stringify(each)).join("\n");
    for (const { files } of Object.values(REACHED)) expect(told).toContain(Object.keys(files)[0]);
    await server.stop();
  });

  test("a policy that a changed configuration names counts only after a restart, when it is protected", async () => {
    place = makeProject(runtime);
    write(place, "rules/other.yaml", "defaults: { hidden: ['*'] }\n");
    const server = await open();
    const client = await connectHttp(await server.url());
    const config = join(place.folder, readdirSync(place.folder).find((name) => name.startsWith("config-")) ?? "");
    writeFileSync(config, readFileSync(config, "utf8").replace("rules/policy.yaml", "rules/other.yaml"));
    const refused = await server.logged("policy refused, the old one stays in force");
    expect(JSON.stringify(refused)).toContain("protected only from the next start on");
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
  });

  test("a protected file that is replaced on the host is protected again before anything else runs", async () => {
    place = makeProject(runtime);
    const server = await open();
    const inside = await openInside(await connectHttp(await server.url()));
    await inside.python("kept = 1");
    // The kernel takes the mount away with the old file.
    write(place, "fresh.yaml", "# by an editor\n");
    renameSync(join(place.folder, "fresh.yaml"), join(place.folder, "mcp-server.yaml"));
    await server.logged("a protected path was replaced in a folder that sandboxes may write: check its content");
    await vi.waitFor(
      async () => {
        expect(
          await inside.sh(
            "cd /workspace; cat mcp-server.yaml; echo 'governance: {}' >> mcp-server.yaml && echo written",
          ),
        ).toBe("# by an editor\n");
      },
      { timeout: 60_000 },
    );
    expect(readFileSync(join(place.folder, "mcp-server.yaml"), "utf8")).toBe("# by an editor\n");
  });

  test("a policy that was replaced where sandboxes may write does not count before a restart", async () => {
    place = makeProject(runtime);
    const server = await open();
    await server.url();
    write(place, "rules/fresh.yaml", "defaults: { hidden: ['*'] }\n");
    renameSync(join(place.folder, "rules/fresh.yaml"), join(place.folder, "rules/policy.yaml"));
    const refused = await server.logged("policy refused, the old one stays in force");
    expect(JSON.stringify(refused)).toContain("a sandbox may have changed it");
    const client = await connectHttp(await server.url());
    expect((await client.listTools()).tools.length).toBeGreaterThan(0);
  });

  test("a volume stays the folder that was opened at the start, whatever has its name later", async () => {
    place = makeProject(runtime);
    write(place, "data/table.csv", "1,2,3\n");
    const outside = makePlace(runtime.account());
    write(outside, "secret.txt", SECRET);
    const attacker = await openInside(await connectHttp(await (await open({})).url()));
    const other: Place = { ...place, dataFolder: join(outside.folder, "data") };
    const settings = { volumes: [`${join(place.folder, "data")}:/data`], ...runtime.settings() };
    const client = await connectHttp(await new Server(other, { sandbox: settings }, userEnvironment(other)).url());
    await attacker.sh(`cd /workspace; mv data taken; ln -s ${outside.folder} data`);
    const victim = await openInside(client);
    expect(await victim.sh("ls /data; cat /data/table.csv /data/secret.txt")).toBe("table.csv\n1,2,3\n");
  });

  test("sockets and FIFOs in a mounted folder are warned of at the start", async () => {
    place = makeProject(runtime);
    const first = await open({});
    const inside = await openInside(await connectHttp(await first.url()));
    await inside.sh("mkfifo /workspace/pipe");
    await first.stop();
    const server = await open({});
    expect(
      await server.logged("a mounted folder holds sockets or FIFOs: they connect sandboxes with this machine"),
    ).toMatchObject({
      paths: [join(place.folder, "pipe")],
    });
  });

  test("a sandbox without network does not share a writable folder with those that have one, unless the configuration says so", async () => {
    place = makeProject(runtime);
    const client = await connectHttp(await (await open({}, { network: { allow: ["example.com"] } })).url());
    const refused = await call(client, "sandbox_create", { offline: true });
    expect(refused.isError).toBe(true);
    expect(textOf(refused)).toContain("sandbox.network.shareVolumes");
  });
}

/** The user's own data folder lies beside the project. */
function userEnvironment({ dataFolder }: Place): Record<string, string> {
  return { XDG_DATA_HOME: join(dirname(dataFolder), "share") };
}

function makeProject(runtime: TestRuntime): Place {
  const made = makePlace(runtime.account());
  const place: Place = { ...made, folder: join(made.folder, "project") };
  for (const [path, text] of Object.entries(FILES)) write(place, path, text);
  return place;
}

/** Of the ordinary user to whom the project belongs where root runs the server. */
const PROJECT_UID = 1_700_000_000;

/** As the user that owns the project. */
function write({ folder, account }: Place, path: string, text: string): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  const uid = account?.uid ?? PROJECT_UID;
  for (let each = file; each.length >= folder.length; each = dirname(each)) chownSync(each, uid, uid);
}

async function read({ folder }: Place, path: string): Promise<string> {
  return readFileSync(join(folder, path), "utf8");
}
