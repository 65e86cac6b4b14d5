/** Addresses of the stand-in world. None of them is ever contacted outside the network namespaces that a test makes. */
export const PLACES = {
  /** Two hosts of the internet, as far as the proxy can tell. */
  public: "44.0.0.2",
  otherPublic: "44.0.0.3",
  publicV6: "2600:44::2",
  metadata: "169.254.169.254",
  private: "10.0.0.5",
  uniqueLocal: "fd00:5::5",
  /** The proxy's own machine, by its address on the cable and by its loopback. */
  proxyMachine: "44.0.0.1",
  proxyMachineV6: "2600:44::1",
  loopback: "127.0.0.1",
} as const;

/** Where the stand-in hosts listen. */
export const PORTS = { http: 80, https: 443, ssh: 22, mcp: 8080 } as const;

export interface SeenRequest {
  readonly address: string;
  readonly method: string;
  readonly url: string;
  readonly headers: readonly string[];
  readonly body: string;
}

export interface HostsState {
  readonly requests: readonly SeenRequest[];
  readonly openConnections: number;
}
