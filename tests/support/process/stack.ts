import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSql, type Sql } from "../../../drizzle/client.ts";
import { createTestDatabase } from "../database/database.ts";
import { Program } from "./program.ts";
import { until } from "./until.ts";

/** A request as it came by the front, and who was asked. */
export interface Passed {
  method: string;
  path: string;
  headers: Headers;
  server: Program;
}

export interface StackOptions {
  /** Of the trial users; the shown default unless given. */
  password?: string;
  /** More of the servers' environment. */
  env?: Record<string, string>;
}

/**
 * Everything that signing in needs, each part a process of its own: PostgreSQL, the trial sign-in provider, two
 * servers on one public address. At that address stands a tiny proxy of the test: it sends polls and the generator to
 * the first server, browsers to the second.
 */
export class Stack {
  readonly passed: Passed[] = [];
  /** Every process of ours, for what they wrote. */
  readonly programs: Program[] = [];
  readonly secrets = {
    clientSecret: randomBytes(24).toString("base64url"),
    keySecret: randomBytes(32).toString("base64url"),
  };
  readonly directory = mkdtempSync(join(tmpdir(), "svc-e2e-"));
  url = "";
  issuer = "";
  databaseUrl = "";
  sql!: Sql;
  idp!: Program;
  /** Of the terminals. */
  a!: Program;
  /** Of the browsers. */
  b!: Program;
  readonly #addresses = new Map<Program, string>();
  readonly #cleanUp = new AsyncDisposableStack();

  static async start({ password, env = {} }: StackOptions = {}): Promise<Stack> {
    const stack = new Stack();
    try {
      await stack.#start(password, env);
      return stack;
    } catch (error) {
      await stack[Symbol.asyncDispose]();
      throw error;
    }
  }

  async #start(password: string | undefined, env: Record<string, string>): Promise<void> {
    this.#cleanUp.defer(() => rmSync(this.directory, { recursive: true, force: true }));
    this.databaseUrl = this.#cleanUp.use(await createTestDatabase()).url;
    this.sql = openSql(this.databaseUrl, { max: 1 });
    this.#cleanUp.defer(() => this.sql.end({ timeout: 5 }));
    this.url = this.#startFront();
    await this.startIdp(password);
    const settings = { ...this.serverSettings(), SVC_PUBLIC_URL: this.url, ...env };
    const start = () =>
      this.#cleanUp.use(
        this.run(
          ["server", "start", "server/main:app", "--port", "0", "--proxy-headers", "--log-level", "debug"],
          settings,
        ),
      );
    this.a = start();
    this.b = start();
    for (const server of [this.a, this.b]) this.#addresses.set(server, await listening(server));
  }

  /** Starts the sign-in provider; again at the same address if it was stopped. */
  async startIdp(password?: string): Promise<void> {
    const port = this.issuer ? new URL(this.issuer).port : "0";
    this.idp = this.#cleanUp.use(
      this.run(["idp", "start", "--port", port, "--public-url", this.url], {
        SVC_OIDC_CLIENT_SECRET: this.secrets.clientSecret,
        SVC_TRIAL_PASSWORD: password,
      }),
    );
    this.issuer = (await this.idp.says(/trial sign-in provider on (\S+)/))[1]!;
  }

  /** What `svc server start` needs from the environment to be one of us. */
  serverSettings(): Record<string, string> {
    return {
      SVC_DATABASE_URL: this.databaseUrl,
      SVC_DOMAIN: "example.com",
      SVC_OIDC_ISSUER: this.issuer,
      SVC_OIDC_CLIENT_SECRET: this.secrets.clientSecret,
      SVC_KEY_SECRET: this.secrets.keySecret,
    };
  }

  /** `svc <args>` as a process, not at home on this machine; on a terminal if it has columns. */
  run(args: string[], env: Record<string, string | undefined> = {}, columns?: number): Program {
    const { PATH } = process.env;
    const home = join(this.directory, "home");
    const base = {
      PATH,
      HOME: home,
      XDG_CONFIG_HOME: join(home, "config"),
      TZ: "UTC",
      TERM: "xterm-256color",
    };
    const program = new Program(args, { env: { ...base, ...env }, cwd: this.directory, columns });
    this.programs.push(program);
    return program;
  }

  /** `svc <args>` of a person at this server. */
  svc(args: string[], env: Record<string, string | undefined> = {}, columns?: number): Program {
    return this.run(args, { SVC_SERVER: this.url, ...env }, columns);
  }

  get credentialsFile(): string {
    return join(this.directory, "home/config/svc/credentials.json");
  }

  /** What BROWSER may be set to: hands the address to the test and lives on, as a browser does. */
  opener(): { path: string; env: Record<string, string>; opened(): Promise<string>; close(): void } {
    const path = join(this.directory, `opener-${crypto.randomUUID()}`);
    // Half a minute at most, whatever becomes of the test.
    const script = `#!/bin/sh
printf '%s %s' "$#" "$1" > "$0.part" && mv "$0.part" "$0.opened"
n=0; while [ -e "$0" ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n + 1)); done
`;
    writeFileSync(path, script);
    chmodSync(path, 0o755);
    return {
      path,
      env: { BROWSER: path },
      async opened() {
        await until("the browser to be opened", () => existsSync(`${path}.opened`));
        const [count, address = ""] = readFileSync(`${path}.opened`, "utf8").split(" ");
        if (count !== "1") throw new Error(`the browser got ${count} arguments`);
        return address;
      },
      close: () => rmSync(path, { force: true }),
    };
  }

  /** Polls that came by. */
  polls(): Passed[] {
    return this.passed.filter(({ path }) => path.startsWith("/noauth/v1/challenge_poller/"));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#cleanUp.disposeAsync();
  }

  #startFront(): string {
    const front = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      idleTimeout: 60,
      fetch: async (request, server) => {
        const { pathname, search } = new URL(request.url);
        const target = pathname.startsWith("/noauth/") ? this.a : this.b;
        const { method, body, signal } = request;
        this.passed.push({ method, path: pathname + search, headers: request.headers, server: target });
        const headers = new Headers(request.headers);
        // Null when the client (a terminal at Ctrl-C) has hung up already.
        headers.append("x-forwarded-for", server.requestIP(request)?.address ?? "127.0.0.1");
        const init = { method, headers, body, signal, redirect: "manual", decompress: false } as const;
        return fetch(this.#addresses.get(target)! + pathname + search, init);
      },
    });
    this.#cleanUp.defer(() => front.stop(true));
    return front.url.origin;
  }
}

/** The address on which a server says that it listens. */
export async function listening(server: Program): Promise<string> {
  return (await server.says(/listening on ([^"\s]+)/))[1]!;
}

export async function freePort(): Promise<number> {
  const socket = createServer();
  await new Promise<void>((done) => socket.listen(0, "127.0.0.1", done));
  const { port } = socket.address() as { port: number };
  await new Promise((done) => socket.close(done));
  return port;
}
