import { createServer, type RequestListener } from "node:http";
import { hostInUrl, isLoopbackHost } from "../../platform/address.ts";
import { ConfigurationError, SvcError } from "../../platform/errors.ts";
import { createProvider } from "./provider.ts";
import { addSignIn } from "./sign_in.ts";
import { defaultPassword } from "./users.ts";

export interface IdpOptions {
  host: string;
  /** 0: any free port, unless `issuer` specifies one. */
  port: number;
  /** The issuer in tokens; defaults to `http://<host>:<port>`. */
  issuer?: string;
  /** The address of the service, the only client. */
  publicUrl: string;
  clientSecret: string;
  password?: string;
  log: (line: string) => void;
}

/** Several times as many as svc sends. oidc-provider takes quadratic time for more. */
const mostParameters = 64;

/**
 * The bundled sign-in provider for trials and tests: three fictional users with the same password.
 *
 * @throws ConfigurationError when it would be reachable by others with the default password
 * @throws SvcError when the port is taken
 */
export async function startIdp(options: IdpOptions): Promise<{ issuer: string; stop(): Promise<void> }> {
  const { host, publicUrl, clientSecret, password = defaultPassword, log } = options;
  if (!isLoopbackHost(host) && password === defaultPassword) {
    throw new ConfigurationError([
      `The trial sign-in provider does not listen on ${host} with the default password: set SVC_TRIAL_PASSWORD, or omit --host`,
    ]);
  }
  const server = createServer();
  const tooMany = (url = "") => url.split("&", mostParameters + 1).length > mostParameters;
  // Installed at once, because a request that arrives before the provider exists would otherwise never be answered.
  const handler = Promise.withResolvers<RequestListener>();
  server.on("request", async (request, response) => {
    if (tooMany(request.url)) return void response.writeHead(414).end();
    const handle = await handler.promise;
    // The provider's addresses are always the issuer's, whatever a proxy says about the requested host.
    const { protocol, host: publicHost } = new URL(issuer);
    Object.assign(request.headers, {
      "x-forwarded-proto": protocol.slice(0, -1),
      "x-forwarded-host": publicHost,
    });
    handle(request, response);
  });
  const port = await listen(server, host, options.port);
  const issuer = options.issuer ?? `http://${hostInUrl(host)}:${port}`;
  const provider = await createProvider({ issuer, publicUrl, clientSecret });
  provider.proxy = true;
  addSignIn(provider, { issuer, publicUrl, password, log });
  // An internal error, e.g. a bug: the message is logged, the browser gets the error page.
  provider.on("server_error", (_ctx, error) => log(`internal fault: ${error.name}: ${error.message}`));
  handler.resolve(provider.callback());
  return {
    issuer,
    stop: () =>
      new Promise((settle) => {
        server.close(() => settle());
        server.closeAllConnections();
      }),
  };
}

async function listen(server: ReturnType<typeof createServer>, host: string, port: number): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).listen(port, host, resolve);
  try {
    await promise;
  } catch (cause) {
    const taken = (cause as NodeJS.ErrnoException).code === "EADDRINUSE";
    const reason = taken ? "is taken: choose another one with --port" : "is not available";
    throw new SvcError("configuration", `Port ${port} of ${host} ${reason}`, { cause });
  }
  return (server.address() as { port: number }).port;
}
