type Fields = Readonly<Record<string, unknown>>;

const sentAs = new WeakMap<Fields, Fields>();

/** Notes the arguments that a caller sent beside those that rules see as `args`, where both differ. */
export function withSent(args: Fields, sent: Fields): Fields {
  if (args !== sent) sentAs.set(args, sent);
  return args;
}

/** What rules see as `sent`. */
export function sentOf(args: Fields): Fields {
  return sentAs.get(args) ?? args;
}
