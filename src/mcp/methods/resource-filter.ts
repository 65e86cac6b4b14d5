import * as z from "zod";
import { META } from "../../capability/content.ts";
import type { Resource } from "../../capability/registry.ts";
import { skillFilter } from "../../capability/skill.ts";
import { OwlError } from "../../errors/owl-error.ts";

const FILTER = z.strictObject({
  category: z.string().max(1000).optional(),
  tag: z.union([z.string(), z.array(z.string()).max(20)]).optional(),
  uri: z.string().max(4096).optional(),
});

/** What a client writes into `_meta` of `resources/list` to see some of the skills. Other resources fit no such filter. */
export function resourceFilter(value: unknown): (resource: Resource) => boolean {
  const { success, data } = FILTER.safeParse(value);
  if (!success) {
    throw new OwlError("invalid_params", `_meta["${META.filter}"] must be an object with category, tag or uri`, {
      hint: 'write {"category": "ecommerce"}, {"tag": ["refund"]} or {"uri": "skill://ecommerce/*"}',
    });
  }
  const { category, tag, uri } = data;
  const isMeant = skillFilter({ category, uri, tags: typeof tag === "string" ? [tag] : tag });
  return ({ definition: { skill } }) => skill !== undefined && isMeant(skill);
}
