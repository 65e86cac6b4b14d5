import { copyFile, cp, rm } from "node:fs/promises";
import path from "node:path";
import { buildServer } from "../scripts/build-server.mjs";
import { UNGOVERNED_BUILD } from "./targets.ts";

const ROOT = path.join(import.meta.dirname, "..");

/** The server as the package has it, with an entry that only the benchmark has. */
export async function buildUngoverned(): Promise<void> {
  await rm(UNGOVERNED_BUILD, { recursive: true, force: true });
  await buildServer(ROOT, UNGOVERNED_BUILD, {
    "owlclaw-ungoverned": path.join(import.meta.dirname, "owlclaw-ungoverned.ts"),
  });
  await cp(path.join(ROOT, "dist/guest"), path.join(UNGOVERNED_BUILD, "guest"), { recursive: true });
  await copyFile(path.join(ROOT, "package.json"), path.join(UNGOVERNED_BUILD, "../package.json"));
}
