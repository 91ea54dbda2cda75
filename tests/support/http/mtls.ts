import type { Config } from "../../../core/config.ts";
import type { Plugins } from "../../../core/plugin/choose.ts";
import { freePort } from "../../../platform/free_port.ts";
import { listenMtls } from "../../../server/process/mtls.ts";
import { CertificateFolder } from "./client_certificates.ts";
import { startTestServer, type TestServer } from "./server.ts";

export interface MtlsServer extends AsyncDisposable {
  server: TestServer;
  /** The address for client certificates. */
  url: string;
  port: number;
  /** A PEM file with the server's certificate at that address, which clients must trust. */
  authorityFile: string;
  certificates: CertificateFolder;
}

interface MtlsOptions {
  /** Replaces the configured plugins. */
  plugins?: Plugins;
  /** A folder with the certificates of the configuration. */
  certificates?: CertificateFolder;
  onFailedHandshake?: (reason: string) => void;
}

/** A test server that also listens for client certificates. */
export async function startMtlsServer(
  overrides: Partial<Config> = {},
  { plugins, certificates = new CertificateFolder(), onFailedHandshake = () => {} }: MtlsOptions = {},
): Promise<MtlsServer> {
  const port = await freePort();
  const url = `https://127.0.0.1:${port}`;
  const server = await startTestServer({ mtlsUrl: url, ...overrides }, plugins);
  const own = certificates.server();
  const mtls = await listenMtls(
    {
      app: "",
      host: "127.0.0.1",
      port: 0,
      mtlsPort: port,
      mtlsKeyfile: own.key,
      header: [],
      mtlsCertfile: own.certificate,
      proxyHeaders: false,
      accessLog: true,
      timeoutKeepAlive: 60,
      timeoutDrain: 0,
      timeoutGracefulShutdown: 1,
      supervised: false,
      takesOver: false,
      whenReady: false,
      watchdog: false,
    },
    {},
    (request) => server.app.fetch(request),
    onFailedHandshake,
  );
  return {
    server,
    url,
    port,
    certificates,
    authorityFile: own.certificate,
    [Symbol.asyncDispose]: async () => {
      await mtls.stop(true);
      await server[Symbol.asyncDispose]();
      certificates[Symbol.dispose]();
    },
  };
}
