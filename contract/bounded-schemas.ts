import { z } from "zod";

/** Parts of result schemas. Each has an upper bound: user code can take the guest over and send anything. */

const MAX_TEXT_CHARS = 8 * 1024 * 1024;

export const text = (): z.ZodString => z.string().max(MAX_TEXT_CHARS);
export const line = (): z.ZodString => z.string().max(4096);
export const path = (): z.ZodString => z.string().max(8192);
export const count = (): z.ZodNumber => z.number().nonnegative();
export const base64 = (): z.ZodString => text().regex(/^[A-Za-z0-9+/]*={0,2}$/);

/** A list that is rejected at its first invalid element: zod's own array checks all elements and describes each failure. */
export function list<T extends z.ZodType>(element: T, maxLength: number) {
  return z
    .array(z.unknown())
    .max(maxLength)
    .transform((values, context): readonly z.output<T>[] => {
      const checked: z.output<T>[] = [];
      for (const value of values) {
        const parsed = element.safeParse(value);
        if (!parsed.success) {
          context.addIssue("an element is not as agreed");
          return z.NEVER;
        }
        checked.push(parsed.data);
      }
      return checked;
    });
}
