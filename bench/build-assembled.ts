import { copyFile, cp, rm } from "node:fs/promises";
import path from "node:path";
import { buildServer } from "../scripts/build-server.mjs";
import { ASSEMBLED_BUILD } from "./targets.ts";

const ROOT = path.join(import.meta.dirname, "..");

/** The server as the package has it, with an entry that only the benchmark has. */
export async function buildAssembled(): Promise<void> {
  await rm(ASSEMBLED_BUILD, { recursive: true, force: true });
  await buildServer(ROOT, ASSEMBLED_BUILD, {
    entries: { "owlclaw-assembled": path.join(import.meta.dirname, "owlclaw-assembled.ts") },
  });
  await cp(path.join(ROOT, "dist/guest"), path.join(ASSEMBLED_BUILD, "guest"), { recursive: true });
  await copyFile(path.join(ROOT, "package.json"), path.join(ASSEMBLED_BUILD, "../package.json"));
}
