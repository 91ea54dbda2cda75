import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openSql, type Sql } from "../../../drizzle/client.ts";
import { createTestDatabase } from "../database/database.ts";
import { Program } from "./program.ts";
import { until } from "./until.ts";

/** A request that passed the proxy, and the server that received it. */
export interface Passed {
  method: string;
  path: string;
  headers: Headers;
  server: Program;
}

export interface StackOptions {
  /** The password of the trial users. */
  password?: string;
  /** Further environment variables of the servers. */
  env?: Record<string, string>;
}

/**
 * Everything that signing in needs, in separate processes: PostgreSQL, the trial sign-in provider, and two servers. A small
 * proxy at the public address sends polls and the generator to the first server, and browsers to the second.
 */
export class Stack {
  readonly passed: Passed[] = [];
  /** All processes, for their output. */
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
  /** The server for terminals. */
  a!: Program;
  /** The server for browsers. */
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

  /** Starts the sign-in provider, at the same address if it was stopped. */
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

  /** The environment of another `svc server start` of this stack. */
  serverSettings(): Record<string, string> {
    return {
      SVC_DATABASE_URL: this.databaseUrl,
      SVC_DOMAIN: "example.com",
      SVC_OIDC_ISSUER: this.issuer,
      SVC_OIDC_CLIENT_SECRET: this.secrets.clientSecret,
      SVC_KEY_SECRET: this.secrets.keySecret,
    };
  }

  /** Runs `svc <args>` with an empty home directory, on a terminal if `columns` is given. */
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

  /** Runs `svc <args>` as a user of this server. */
  svc(args: string[], env: Record<string, string | undefined> = {}, columns?: number): Program {
    return this.run(args, { SVC_SERVER: this.url, ...env }, columns);
  }

  get credentialsFile(): string {
    return join(this.directory, "home/config/svc/credentials.json");
  }

  /** A program for BROWSER that passes the address to the test and keeps running, like a browser. */
  opener(): { path: string; env: Record<string, string>; opened(): Promise<string>; close(): void } {
    const path = join(this.directory, `opener-${crypto.randomUUID()}`);
    // Ends after half a minute, even if the test does not end it.
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

  /** The polls so far. */
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
        // Null if the client has already disconnected, such as a terminal at Ctrl-C.
        headers.append("x-forwarded-for", server.requestIP(request)?.address ?? "127.0.0.1");
        const init = { method, headers, body, signal, redirect: "manual", decompress: false } as const;
        return fetch(this.#addresses.get(target)! + pathname + search, init);
      },
    });
    this.#cleanUp.defer(() => front.stop(true));
    return front.url.origin;
  }
}

/** Waits for the address that a server prints when it listens. */
export async function listening(server: Program): Promise<string> {
  return (await server.says(/listening on ([^"\s]+)/))[1]!;
}
