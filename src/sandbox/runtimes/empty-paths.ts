import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** What is shown in the place of a secret. */
export interface EmptyPaths {
  readonly file: string;
  readonly folder: string;
}

export async function provideEmptyPaths(stateFolder: string): Promise<EmptyPaths> {
  const folder = join(stateFolder, "empty");
  const paths = { file: join(folder, "file"), folder: join(folder, "folder") };
  await mkdir(paths.folder, { recursive: true });
  // Never replaced: sandboxes of other servers may have it mounted, and the kernel takes a mount away with its file.
  await writeFile(paths.file, "", { flag: "wx", mode: 0o444 }).catch((error: unknown) => {
    if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error;
  });
  await chmod(paths.folder, 0o555);
  return paths;
}
