import { statSync } from "node:fs";
import { join } from "node:path";

/** The name is used as a folder name and appears in paths inside sandboxes. */
export const TEMPLATE_NAME = /^[a-z0-9][a-z0-9_-]{0,39}$/;

/** Templates that are part of the package. */
export const STOCK_TEMPLATE_NAMES: readonly string[] = ["python", "node"];

/** The folder of a template that the operator has built. */
export function templateFolder(dataFolder: string, name: string): string {
  return join(dataFolder, "templates", name);
}

export interface TemplateSources {
  readonly dataFolder: string;
  /** Templates that are images of a container engine. */
  readonly withImage: readonly string[];
}

/** Throws with the reason when no sandbox can start from the template. */
export function checkTemplate(name: string, { dataFolder, withImage }: TemplateSources): void {
  if (STOCK_TEMPLATE_NAMES.includes(name) || withImage.includes(name)) return;
  const manifest = join(templateFolder(dataFolder, name), "template.json");
  if (statSync(manifest, { throwIfNoEntry: false })?.isFile() !== true) throw new Error("no such template was built");
}

/** The templates for which the configuration names an image. */
export function templatesWithImage(
  templates: Readonly<Record<string, { readonly image?: string | undefined }>>,
): string[] {
  return Object.entries(templates).flatMap(([name, { image }]) => (image === undefined ? [] : [name]));
}
