import { hostInUrl } from "../../platform/address.ts";

/** What `svc server start` is told; the names are those of its options. */
export interface StartOptions {
  /** `<module>:<attribute>`; `server/main:app` is our own. */
  app: string;
  host: string;
  port: number;
  /** A path: a Unix socket instead of host and port. */
  uds?: string;
  /** The mode of that socket, e.g. 0o660. */
  udsMode?: number;
  /** A descriptor that somebody else listens on for us. */
  fd?: number;
  proxyHeaders: boolean;
  forwardedAllowIps?: string;
  rootPath?: string;
  logLevel?: string;
  accessLog: boolean;
  sslKeyfile?: string;
  sslCertfile?: string;
  sslCaCerts?: string;
  limitConcurrency?: number;
  limitMaxRequests?: number;
  backlog?: number;
  /** Seconds. */
  timeoutKeepAlive: number;
  /** Seconds. */
  timeoutDrain: number;
  /** Seconds. */
  timeoutGracefulShutdown: number;
  envFile?: string;
  /** `<name>: <value>` each. */
  header: readonly string[];
  /** Whether a supervisor has started this process, which shares its port with others. */
  supervised: boolean;
  /** Whether it does so in the place of another process, which goes as soon as this one answers. */
  takesOver: boolean;
  /** Whether it answers nobody, and lets that other process go on, until it can serve. */
  whenReady: boolean;
  /** Whether it ends itself when its event loop does not turn: not where somebody may be stepping through it. */
  watchdog: boolean;
}

/** Where a server listens, for people. */
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
