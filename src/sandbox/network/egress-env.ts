export interface EgressEnvOptions {
  /** Where the forwarder inside listens. */
  readonly port?: number;
  /** Where the preload for Node lies inside; absent: `fetch` of a Node that knows no proxy variables stays without network. */
  readonly nodePreload?: string;
}

const NO_PROXY = "localhost,127.0.0.1,::1";

/** The environment that leads programs inside a sandbox to the proxy. It is a courtesy, not a control: there is no other way out. */
export function egressEnv(options: EgressEnvOptions = {}): Record<string, string> {
  const { port = 3128, nodePreload } = options;
  const proxy = `http://127.0.0.1:${port}`;
  return {
    HTTP_PROXY: proxy,
    HTTPS_PROXY: proxy,
    ALL_PROXY: proxy,
    NO_PROXY,
    http_proxy: proxy,
    https_proxy: proxy,
    all_proxy: proxy,
    no_proxy: NO_PROXY,
    PIP_PROXY: proxy,
    npm_config_proxy: proxy,
    npm_config_https_proxy: proxy,
    npm_config_noproxy: NO_PROXY,
    // Newer Nodes read the variables above when they are told to, but keep to themselves why the proxy refused.
    ...(nodePreload === undefined ? { NODE_USE_ENV_PROXY: "1" } : { NODE_OPTIONS: `--require ${nodePreload}` }),
  };
}
