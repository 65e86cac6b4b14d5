import { z } from "zod";

/** A list that is refused at its first element that is not as agreed: the library's own looks at all, and describes each. */
export function list<T extends z.ZodType>(element: T, maxLength: number) {
  return z
    .array(z.unknown())
    .max(maxLength)
    .transform((values, context): z.output<T>[] => {
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
