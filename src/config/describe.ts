import type { ConfigLayer } from "./config-error.ts";
import { CONFIG_KEYS } from "./keys.ts";
import type { LoadedConfig } from "./load.ts";
import { isEmpty, MASK, showValue } from "./mask.ts";
import type { Config } from "./schema.ts";

/** One effective value, as `config show` prints it. */
export interface EffectiveValue {
  readonly path: string;
  /** The value itself; the mask when it is a secret that is set. */
  readonly value: unknown;
  /** The same in one short line. */
  readonly text: string;
  readonly layer: ConfigLayer;
  readonly source: string;
}

export function effectiveValues({ config, sources }: LoadedConfig): EffectiveValue[] {
  return CONFIG_KEYS.map(({ path, secret }) => {
    const value = valueAt(config, path);
    const { layer, name } = sources.get(path) ?? { layer: "default", name: "default" };
    return { path, value: secret && !isEmpty(value) ? MASK : value, text: showValue(path, value), layer, source: name };
  });
}

function valueAt(config: Config, path: string): unknown {
  let value: unknown = config;
  for (const name of path.split(".")) {
    value = typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
  }
  return value;
}
