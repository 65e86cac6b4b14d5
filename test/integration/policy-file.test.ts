import { mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { call, newFolder, startGoverned, toolNames } from "./governance-lab.ts";
import { type HttpServer, startHttp, until } from "./harness.ts";

const REFUSED = "policy refused, the old one stays in force";

/** The problems of each refusal so far. */
function refusals({ logs }: HttpServer): string[] {
  return logs.filter(({ message }) => message === REFUSED).map(({ problems }) => JSON.stringify(problems));
}

test("[004-R8.8] a policy file that is swapped for anything else under a running server leaves the old policy in force", async () => {
  const folder = newFolder();
  const policyFile = path.join(folder, "policy.yaml");
  writeFileSync(policyFile, "{}");
  const server = await startGoverned({ governance: { policyFile } });
  onTestFinished(() => server.stop());
  const next = path.join(folder, "next");
  swap(policyFile, "defaults: { hidden: [echo] }");
  await until(
    () => toolNames(server.url),
    (names) => !names.includes("echo"),
  );
  const elsewhere = path.join(folder, "elsewhere.yaml");
  writeFileSync(elsewhere, "defaults: { hidden: [add] }");
  mkdirSync(path.join(folder, "folder"));
  const swaps: readonly (readonly [string, () => void])[] = [
    ["not UTF-8", () => writeFileSync(next, Buffer.from([0xff, 0xfe, 0x00, 0x80]))],
    ["larger than", () => writeFileSync(next, `${readFileSync(elsewhere, "utf8")}\n#${"x".repeat(2 * 1024 * 1024)}`)],
    ["aliases", () => writeFileSync(next, aliases())],
    ["is not a file", () => symlinkSync("/dev/zero", next)],
    ["must hold keys", () => writeFileSync(next, "- just\n- a list")],
    ["is not a file", () => symlinkSync("folder", next)],
    ["nonsense", () => writeFileSync(next, "nonsense: true")],
    ["cannot be read", () => symlinkSync("policy.yaml", next)],
  ];
  for (const [index, [problem, make]] of swaps.entries()) {
    make();
    renameSync(next, policyFile);
    const told = await until(
      () => refusals(server),
      ({ length }) => length > index,
    );
    expect(told[index]).toContain(problem);
    expect(await toolNames(server.url)).not.toContain("echo");
    expect((await call(server.url, "echo", { text: "x" })).body.error?.data).toMatchObject({ rule: "defaults.hidden" });
  }
  // A link to a good one is how containers swap files.
  symlinkSync("elsewhere.yaml", next);
  renameSync(next, policyFile);
  await until(
    () => toolNames(server.url),
    (names) => names.includes("echo") && !names.includes("add"),
  );
  expect(refusals(server)).toHaveLength(swaps.length);
});

test("a policy file that the configuration names later is read and looked at", async () => {
  const folder = newFolder();
  const [before, later] = [path.join(folder, "before.yaml"), path.join(folder, "later.yaml")];
  writeFileSync(before, "defaults: { hidden: [echo] }");
  writeFileSync(later, "defaults: { hidden: [add] }");
  const sandbox = { enabled: false, root: newFolder() };
  const server = await startHttp({ config: { sandbox, governance: { policyFile: before } } });
  onTestFinished(() => server.stop());
  const { spawnargs } = server.child;
  const file = spawnargs[spawnargs.indexOf("--config") + 1] ?? "";
  const config = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
  const isHidden = async (name: string): Promise<boolean> => !(await toolNames(server.url)).includes(name);
  const isTrue = (value: boolean): boolean => value;
  swap(file, JSON.stringify({ ...config, governance: { policyFile: later } }));
  await until(() => isHidden("add"), isTrue);
  swap(later, "defaults: { hidden: [list] }");
  await until(() => isHidden("list"), isTrue);
  expect(await isHidden("add")).toBe(false);
  expect(refusals(server)).toEqual([]);
  expect(server.logs.filter(({ message }) => message === "these settings count after a restart")).toEqual([]);
});

/** As editors do it: a reader finds the old file or the new one. */
function swap(file: string, content: string): void {
  writeFileSync(`${file}.next`, content);
  renameSync(`${file}.next`, file);
}

/** Each line holds the one before ten times. */
function aliases(): string {
  const lines = Array.from({ length: 8 }, (_, index) => {
    const of = index === 0 ? "x" : `*a${index - 1}`;
    return `a${index}: &a${index} [${Array.from({ length: 10 }, () => of).join(", ")}]`;
  });
  return lines.join("\n");
}
