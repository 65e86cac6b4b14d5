/** The `auth` part of the configuration. An empty string means: not set. */
export interface AuthConfig {
  readonly enabled: boolean;
  readonly jwt: {
    readonly secret: string;
    readonly publicKey: string;
    readonly jwksUrl: string;
    readonly audience: string;
    readonly issuer: string;
  };
}
