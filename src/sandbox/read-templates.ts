import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { TEMPLATE_NAME, templateFolder, templatesWithImage } from "../config/template-name.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type Template, Templates } from "./templates.ts";

export const manifestSchema = z.object({
  language: z.enum(["python", "node"]),
  packages: z.array(z.string()),
  sizeBytes: z.number(),
  builtAt: z.string(),
});

export interface TemplateSettings {
  readonly root: string;
  readonly templates: Readonly<Record<string, { readonly image?: string | undefined }>>;
}

/** The templates that were built under the data folder or are images, beside those that are always there. A broken one is left out. */
export async function readTemplates(settings: TemplateSettings, logger: Logger): Promise<Templates> {
  const { root: dataFolder } = settings;
  const names = await readdir(join(dataFolder, "templates")).catch(() => []);
  const found: Template[] = templatesWithImage(settings.templates).map((name) => ({ name, language: "python" }));
  for (const name of names.filter((each) => TEMPLATE_NAME.test(each))) {
    try {
      found.push(await readTemplate(dataFolder, name));
    } catch (error) {
      logger.warning("a template cannot be used", { template: name, error });
    }
  }
  return new Templates(found);
}

async function readTemplate(dataFolder: string, name: string): Promise<Template> {
  const folder = templateFolder(dataFolder, name);
  const text = await readFile(join(folder, "template.json"), "utf8");
  const { language, ...rest } = manifestSchema.parse(JSON.parse(text));
  return { name, language, built: { folder, ...rest } };
}
