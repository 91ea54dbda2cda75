import { createHash } from "node:crypto";

/** An unsigned token with the right format that expires in `seconds`, or has expired if negative. */
export function fakeToken({
  seconds = 3600,
  user = "alice@example.com",
  now = Date.now(),
  ...claims
} = {}): string {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = Math.floor(now / 1000) + seconds;
  return `${part({ alg: "ES256", typ: "at+jwt" })}.${part({ sub: user, exp, ...claims })}.${part("signature")}`;
}

type Handler = (request: Request, server: FakeServer) => Response | Promise<Response>;

/**
 * The server's side of signing in, as far as the client can see it. A sign-in stays pending until `decide`; a bound
 * poll is held until then. A test replaces `generator`, `poller`, `whoami` or `revoke` to misbehave.
 */
export class FakeServer {
  readonly requests: { method: string; path: string; headers: Headers }[] = [];
  readonly token = fakeToken();
  generator: Handler = (_request, server) => Response.json(server.challenge());
  poller: Handler = (request, server) => server.poll(request);
  whoami: Handler = (_request, server) =>
    Response.json({
      user: "alice@example.com",
      groups: ["admin", "oncall"],
      admin: true,
      expires_at: server.expiresAt,
    });
  revoke: Handler = () => new Response(null, { status: 204 });
  /** Resolves at the client's first poll, when the browser was started and the spinner runs. */
  readonly polled: Promise<void>;

  readonly #server;
  readonly #decision = Promise.withResolvers<Record<string, unknown>>();
  #decided = false;
  readonly #polled = Promise.withResolvers<void>();

  constructor(options: { tls?: Bun.TLSOptions } = {}) {
    this.polled = this.#polled.promise;
    this.#server = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      tls: options.tls,
      idleTimeout: 60,
      fetch: (request) => this.#route(request),
    });
  }

  get url(): string {
    return this.#server.url.origin;
  }

  get expiresAt(): string {
    return new Date(
      JSON.parse(Buffer.from(this.token.split(".")[1]!, "base64url").toString()).exp * 1000,
    ).toISOString();
  }

  /** The generator's default response. */
  challenge(): Record<string, unknown> {
    return {
      challenge_url: `${this.url}/challenge_validator/T0`,
      polling_url: `${this.url}/noauth/v1/challenge_poller/T0`,
      expires_in: 120,
      interval: 0.1,
      user_code: "WXYZ-2345",
      binding: "S256",
    };
  }

  /** Ends the sign-in. "success" is a click on Approve. */
  decide(status: "success" | "denied" | "expired" | "unknown"): void {
    this.#decided = true;
    if (status !== "success") this.#decision.resolve({ status });
    else
      this.#decision.resolve({
        status,
        encoded_jwt: this.token,
        cookie_name: "svc_auth",
        user: "alice@example.com",
      });
  }

  async poll(request: Request): Promise<Response> {
    const [, verifier] = /^Challenge (.+)$/.exec(request.headers.get("authorization") ?? "") ?? [];
    const generated = this.requests.find(({ path }) => path.includes("challenge_generator"))!;
    const expected = new URL(generated.path, this.url).searchParams.get("code_challenge");
    const right =
      verifier !== undefined && createHash("sha256").update(verifier).digest("base64url") === expected;
    if (!this.#decided && !(right && request.headers.get("prefer") === "wait=25"))
      return Response.json({ status: "pending" });
    const body = await this.#decision.promise;
    const status = { success: 200, denied: 403, expired: 410, unknown: 404 }[body.status as string] ?? 200;
    return Response.json(body, { status });
  }

  stop(): void {
    void this.#server.stop(true);
  }

  async #route(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    this.requests.push({ method: request.method, path: pathname + search, headers: request.headers });
    if (pathname.startsWith("/noauth/v1/challenge_generator/")) return await this.generator(request, this);
    if (pathname.startsWith("/noauth/v1/challenge_poller/")) {
      this.#polled.resolve();
      return await this.poller(request, this);
    }
    if (pathname === "/whoami") return await this.whoami(request, this);
    if (pathname === "/tokens/current" && request.method === "DELETE")
      return await this.revoke(request, this);
    return Response.json({ code: "not_found", detail: "No such page" }, { status: 404 });
  }
}
