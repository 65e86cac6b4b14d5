import { mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll } from "vitest";

export type Files = Readonly<Record<string, string | Uint8Array>>;

export const REFUND = `---
name: refund
title: Refunds
description: Pays money back for goods that came back.
metadata:
  tags: money, returns
  version: "1.0"
---

# Refund

Check the amount, then refund it once.
`;

export const PIXEL: Buffer = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** Three good skills in two categories, and one that cannot be served. */
export const SHOP: Files = {
  "ecommerce/refund/SKILL.md": REFUND,
  "ecommerce/refund/references/limits.md": "# Limits\n\n100 € a day: über 100 asks a manager.\n",
  "ecommerce/refund/assets/logo.png": PIXEL,
  "ecommerce/returns/label/SKILL.md": skill("label", "Makes a label for a parcel.", "tags: [Returns, parcel]\n"),
  "support/tone/SKILL.md": skill("tone", "How we speak with customers.", "tags: style\n"),
  "support/broken/SKILL.md": "---\nname: [\n---\n",
};

export function skill(name: string, description: string, more = ""): string {
  return `---\nname: ${name}\ndescription: ${description}\n${more}---\n\n# ${name}\n`;
}

/** A folder of skills that is gone when the tests of the file are over. */
export function skillFolder(files: Files): string {
  const folder = realpathSync(mkdtempSync(path.join(tmpdir(), "owlclaw-skills-")));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  writeSkills(folder, files);
  return folder;
}

/** Each file appears whole, so that a watcher cannot see the half of it. */
export function writeSkills(folder: string, files: Files): void {
  const draft = `${folder}.draft`;
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
    writeFileSync(draft, content);
    renameSync(draft, path.join(folder, name));
  }
}
