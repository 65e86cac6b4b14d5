import { readdir, readFile } from "node:fs/promises";

/** A process and all below it. Those that end meanwhile may be left out. */
export async function processTree(rootPid: number): Promise<readonly number[]> {
  const found: number[] = [];
  const pending = [rootPid];
  for (let pid = pending.pop(); pid !== undefined; pid = pending.pop()) {
    found.push(pid);
    pending.push(...(await childrenOf(pid)));
  }
  return found;
}

/** Linux lists them by the thread that started them. */
async function childrenOf(pid: number): Promise<number[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(
    threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/children`, "utf8").catch(() => "")),
  );
  return lists.flatMap((list) =>
    list
      .split(" ")
      .filter((part) => part !== "")
      .map(Number),
  );
}
