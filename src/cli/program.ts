import { Argument, Command } from "commander";
import { PACKAGE_VERSION } from "../config/package-version.ts";
import type { CommandAction } from "./command.ts";
import { addConfigFlags } from "./config-flags.ts";
import { addDashboard, addDoctor, addPause } from "./operations-commands.ts";
import { addInstall, addTrust } from "./install-commands.ts";
import { addLedger, addStats } from "./ledger-commands.ts";
import { addApprovals, addPolicy } from "./policy-commands.ts";
import type { Terminal } from "./terminal.ts";

export interface ProgramOptions {
  readonly terminal: Terminal;
  /** Called with the exit code of the command that ran. */
  readonly finish: (exitCode: number) => void;
}

/** Builds the command tree. The code of a command is loaded only when it runs, which keeps the start fast. */
export function buildProgram({ terminal, finish }: ProgramOptions): Command {
  const root = new Command("owlclaw").description("A governed sandbox for AI agents, served over MCP.");
  root
    .exitOverride()
    .configureHelp({ minWidthToWrap: 20 })
    .configureOutput({
      writeOut: terminal.out,
      writeErr: terminal.err,
      getOutHelpWidth: () => helpWidth(terminal),
      getErrHelpWidth: () => helpWidth(terminal),
      getOutHasColors: () => terminal.outColor,
      getErrHasColors: () => terminal.errColor,
    });
  const runs = (command: Command, load: () => Promise<CommandAction>): void => {
    command.action(async () => {
      const action = await load();
      finish(await action({ terminal, root, args: command.args, flags: command.opts() }));
    });
  };

  const server = root
    .command("mcp-server")
    .description("The MCP server: start it, configure it, look at what it serves.");
  addStart(server, runs);
  addConfig(server, runs);
  addTrust(server, runs, examples);
  addTools(server, runs);
  addResources(server, runs);
  addSkills(server, runs);
  addSandboxes(server, runs);
  addLedger(server, runs, examples);
  addPolicy(server, runs, examples);
  addApprovals(server, runs, examples);
  addStats(server, runs, examples);
  addTemplates(server, runs);
  addToken(server, runs);
  addPause(server, runs, examples);
  addDashboard(server, runs, examples);
  addDoctor(server, runs, examples);
  addInstall(root, runs, examples);
  addCompletion(root, runs);
  addVersion(root, PACKAGE_VERSION);
  return root;
}

type Runs = (command: Command, load: () => Promise<CommandAction>) => void;

function addStart(server: Command, runs: Runs): void {
  const start = addConfigFlags(server.command("start"), "all")
    .description("Starts the server and runs it until it is told to stop.")
    .addHelpText(
      "after",
      examples(
        "owlclaw mcp-server start",
        "owlclaw mcp-server start --transport http --port 9000",
        "owlclaw mcp-server start --handlers ./handlers/*.ts",
        "owlclaw mcp-server start --mount .",
        "owlclaw mcp-server start --config production.yaml --set tools.timeoutSeconds=60",
      ),
    );
  runs(start, async () => (await import("./start.ts")).startCommand);
}

function addConfig(server: Command, runs: Runs): void {
  const config = server.command("config").description("Checks, shows and makes configuration.");

  const validate = addConfigFlags(config.command("validate"), "all")
    .description("Checks the configuration, and every file it names, without starting anything.")
    .addHelpText(
      "after",
      examples("owlclaw mcp-server config validate", "owlclaw mcp-server config validate --config production.yaml"),
    );
  runs(validate, async () => (await import("./config.ts")).configValidateCommand);

  const show = addConfigFlags(config.command("show"), "all")
    .description("Shows every value in force and where it comes from. Secrets are masked.")
    .option("--json", "Prints JSON.")
    .addHelpText(
      "after",
      examples("owlclaw mcp-server config show", "MCP_SERVER_PORT=9000 owlclaw mcp-server config show --json"),
    );
  runs(show, async () => (await import("./config.ts")).configShowCommand);

  const schema = config
    .command("schema")
    .description("Prints the JSON Schema of mcp-server.yaml, for editors.")
    .addHelpText("after", examples("owlclaw mcp-server config schema > mcp-server.schema.json"));
  runs(schema, async () => (await import("./config.ts")).configSchemaCommand);

  const init = config
    .command("init")
    .description("Writes a commented mcp-server.yaml with every key at its default.")
    .addArgument(new Argument("[file]", "Where to write it.").default("mcp-server.yaml"))
    .option("--force", "Replaces a file that is there.")
    .option("--stdout", "Prints it and writes no file.")
    .addHelpText("after", examples("owlclaw mcp-server config init", "owlclaw mcp-server config init --stdout"));
  runs(init, async () => (await import("./config.ts")).configInitCommand);
}

function addTools(server: Command, runs: Runs): void {
  const tools = server.command("tools").description("Looks at the tools, and tries them.");

  const list = addConfigFlags(tools.command("list"), "common")
    .description("Lists the tools that clients would see.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server tools list", "owlclaw mcp-server tools list --json"));
  runs(list, async () => (await import("./tools.ts")).toolsListCommand);

  const call = addConfigFlags(tools.command("call"), "common")
    .description("Calls a tool without any client and prints its result. Exit code 1 when the tool fails.")
    .argument("<name>", "Name of the tool.")
    .argument("[json]", "Arguments as a JSON object; - reads them from stdin.", "{}")
    .option("--json", "Prints the whole MCP result as JSON.")
    .addHelpText(
      "after",
      examples(
        `owlclaw mcp-server tools call code_run '{"code": "print(6*7)"}'`,
        `owlclaw mcp-server tools call greet '{"name": "Ada"}'`,
        "cat arguments.json | owlclaw mcp-server tools call greet - --json",
      ),
    );
  runs(call, async () => (await import("./tools.ts")).toolsCallCommand);
}

function addResources(server: Command, runs: Runs): void {
  const list = addConfigFlags(
    server.command("resources").description("Looks at the resources.").command("list"),
    "common",
  )
    .description("Lists the resources and resource templates that clients would see.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server resources list"));
  runs(list, async () => (await import("./tools.ts")).resourcesListCommand);
}

function addSkills(server: Command, runs: Runs): void {
  const skills = server.command("skills").description("Looks at the skills, and checks them.");
  const addFilters = (command: Command): Command =>
    command
      .option("--category <name>", "Only this category and those below it.")
      .option("--tag <tag...>", "Only skills that have all of these tags.")
      .option("--json", "Prints JSON.");

  const list = addFilters(addConfigFlags(skills.command("list"), "skills"))
    .description("Lists the skills that clients would see.")
    .argument("[uri]", "Only URIs that fit, such as 'skill://ecommerce/*'.")
    .addHelpText("after", examples("owlclaw mcp-server skills list", "owlclaw mcp-server skills list --tag refund"));
  runs(list, async () => (await import("./skills.ts")).skillsListCommand);

  const search = addFilters(addConfigFlags(skills.command("search"), "skills"))
    .description("Finds skills by words in their names, tags, categories and descriptions, best first.")
    .argument("<words...>", "What to look for.")
    .addHelpText("after", examples("owlclaw mcp-server skills search refund money"));
  runs(search, async () => (await import("./skills.ts")).skillsSearchCommand);

  const validate = addConfigFlags(skills.command("validate"), "skills")
    .description("Checks every skill. Exit code 1 when one of them cannot be served.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server skills validate --skills ./skills"));
  runs(validate, async () => (await import("./skills.ts")).skillsValidateCommand);
}

function addSandboxes(server: Command, runs: Runs): void {
  const sandboxes = server.command("sandboxes").description("Looks at the sandboxes of running servers.");

  const list = addConfigFlags(sandboxes.command("list"), "common")
    .description("Lists the sandboxes of the servers that use the same data folder.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server sandboxes list"));
  runs(list, async () => (await import("./sandboxes.ts")).sandboxesListCommand);

  const destroy = addConfigFlags(sandboxes.command("destroy"), "common")
    .description("Stops a sandbox with everything in it and removes its files.")
    .argument("<name>", "Name of the sandbox, as the list shows it.")
    .addHelpText("after", examples("owlclaw mcp-server sandboxes destroy owl-0123456789abcdef0123"));
  runs(destroy, async () => (await import("./sandboxes.ts")).sandboxesDestroyCommand);
}

function addTemplates(server: Command, runs: Runs): void {
  const template = server.command("template").description("Lists and builds what sandboxes start from.");

  const list = addConfigFlags(template.command("list"), "common")
    .description("Lists the templates of the data folder.")
    .option("--json", "Prints JSON.")
    .addHelpText("after", examples("owlclaw mcp-server template list"));
  runs(list, async () => (await import("./templates.ts")).templateListCommand);

  const build = addConfigFlags(template.command("build"), "common")
    .description("Installs packages, in a sandbox, into a template of your own.")
    .argument("<name>", "Name of the template.")
    .option("--python <packages...>", "Python packages as pip names them, or wheels and archives on this machine.")
    .option("--requirements <file>", "A requirements file with more of them.")
    .option("--node <packages...>", "Node packages as npm names them, or archives on this machine.")
    .option("--language <language>", "What code_run means when a call does not say: python or node.")
    .option("--allow <hosts...>", "Hosts that the build may reach beside the package registries.")
    .option("--replace", "Builds a template again that is there.")
    .option("--json", "Prints JSON.")
    .addHelpText(
      "after",
      examples(
        "owlclaw mcp-server template build science --python scipy scikit-learn",
        "owlclaw mcp-server template build team --requirements requirements.txt --node lodash",
        "owlclaw mcp-server template build team --python ./dist/ours-1.0-py3-none-any.whl --replace",
      ),
    );
  runs(build, async () => (await import("./templates.ts")).templateBuildCommand);

  const remove = addConfigFlags(template.command("remove"), "common")
    .description("Removes a template. Sandboxes that run on it go on.")
    .argument("<name>", "Name of the template.")
    .addHelpText("after", examples("owlclaw mcp-server template remove team"));
  runs(remove, async () => (await import("./templates.ts")).templateRemoveCommand);
}

function addToken(server: Command, runs: Runs): void {
  const create = addConfigFlags(
    server.command("token").description("Makes tokens for development.").command("create"),
    "common",
  )
    .description("Prints a token signed with auth.jwt.secret of the configuration.")
    .requiredOption("--sub <name>", "Who the token is for.")
    .option("--scope <scopes...>", "Scopes, separated by commas or spaces.")
    .option("--expires <time>", "How long it is valid: a number with s, m, h or d.", "1h")
    .option("--json", "Prints JSON with the token and its claims.")
    .addHelpText(
      "after",
      examples(
        "owlclaw mcp-server token create --sub ada",
        "owlclaw mcp-server token create --sub root --scope owlclaw:admin --expires 15m",
      ),
    );
  runs(create, async () => (await import("./token-create.ts")).tokenCreateCommand);
}

function addCompletion(root: Command, runs: Runs): void {
  const completion = root
    .command("completion")
    .description("Prints a completion script for your shell.")
    .addArgument(new Argument("<shell>", "Your shell.").choices(["bash", "zsh", "fish"]))
    .addHelpText(
      "after",
      examples(
        'eval "$(owlclaw completion bash)"',
        'owlclaw completion zsh > "${fpath[1]}/_owlclaw"',
        "owlclaw completion fish > ~/.config/fish/completions/owlclaw.fish",
      ),
    );
  runs(completion, async () => (await import("./completion.ts")).completionCommand);
}

function addVersion(command: Command, version: string): void {
  command.version(version, "-v, --version", "Prints the version.").helpOption("-h, --help", "Shows this help.");
  for (const child of command.commands) addVersion(child, version);
}

function examples(...lines: readonly string[]): string {
  return ["", "Examples:", ...lines.map((line) => `  $ ${line}`)].join("\n");
}

function helpWidth({ width }: Terminal): number {
  return Number.isFinite(width) ? width : 100;
}
