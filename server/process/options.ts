import { hostInUrl } from "../../platform/address.ts";

/** The options of `svc server start`, under the same names. */
export interface StartOptions {
  /** `<module>:<attribute>`; `server/main:app` is our own. */
  app: string;
  host: string;
  port: number;
  /** The path of a Unix socket, instead of host and port. */
  uds?: string;
  /** The mode of that socket, e.g. 0o660. */
  udsMode?: number;
  /** A listening descriptor inherited from the parent process. */
  fd?: number;
  proxyHeaders: boolean;
  forwardedAllowIps?: string;
  rootPath?: string;
  logLevel?: string;
  accessLog: boolean;
  sslKeyfile?: string;
  sslCertfile?: string;
  sslCaCerts?: string;
  /** Where clients may authenticate with certificates, besides the other address. */
  mtlsPort?: number;
  /** Certificate authorities whose certificates stand for users, besides our own. */
  mtlsCaCerts?: string;
  mtlsKeyfile?: string;
  mtlsCertfile?: string;
  /** Seconds. */
  timeoutKeepAlive: number;
  /** Seconds. */
  timeoutDrain: number;
  /** Seconds. */
  timeoutGracefulShutdown: number;
  envFile?: string;
  /** Each is `<name>: <value>`. */
  header: readonly string[];
  /** Whether a supervisor started this process, which shares its port with others. */
  supervised: boolean;
  /** Whether it replaces another process, which stops once this one is ready. */
  takesOver: boolean;
  /** Whether it accepts no requests until it can serve, and the other process continues until then. */
  whenReady: boolean;
  /** Whether it ends itself when its event loop hangs. Off where somebody may be debugging it. */
  watchdog: boolean;
}

/** Describes where a server listens. */
export function placeOf({
  host,
  port,
  uds,
  fd,
  sslKeyfile,
}: Pick<StartOptions, "host" | "port" | "uds" | "fd" | "sslKeyfile">): string {
  if (uds !== undefined) return `unix:${uds}`;
  if (fd !== undefined) return `descriptor ${fd}`;
  return `${sslKeyfile === undefined ? "http" : "https"}://${hostInUrl(host)}:${port}`;
}
