import { statSync } from "node:fs";
import { join } from "node:path";

/** A name is a folder's name and shows up in paths inside sandboxes. */
export const TEMPLATE_NAME = /^[a-z0-9][a-z0-9_-]{0,39}$/;

/** Always there, whatever was built. */
export const STOCK_TEMPLATE_NAMES: readonly string[] = ["python", "node"];

/** Where a template of one's own lies. */
export function templateFolder(dataFolder: string, name: string): string {
  return join(dataFolder, "templates", name);
}

export interface TemplateSources {
  readonly dataFolder: string;
  /** Those that are images of a container engine. */
  readonly withImage: readonly string[];
}

/** Throws with the reason when a sandbox could not start from it. */
export function checkTemplate(name: string, { dataFolder, withImage }: TemplateSources): void {
  if (STOCK_TEMPLATE_NAMES.includes(name) || withImage.includes(name)) return;
  const manifest = join(templateFolder(dataFolder, name), "template.json");
  if (statSync(manifest, { throwIfNoEntry: false })?.isFile() !== true) throw new Error("no such template was built");
}

/** The templates that the configuration itself makes, by naming an image. */
export function templatesWithImage(
  templates: Readonly<Record<string, { readonly image?: string | undefined }>>,
): string[] {
  return Object.entries(templates).flatMap(([name, { image }]) => (image === undefined ? [] : [name]));
}
