import type { Io, Output } from "../../../cli/io.ts";
import { run } from "../../../cli/run.ts";
import { signInToken, type TestServer } from "../http/server.ts";
import { configHome, type TestIo, testIo } from "./io.ts";

/** The result of one command line. */
export interface Ran {
  code: number;
  stdout: string;
  stderr: string;
}

export interface CliUser {
  /** The environment of every command, which tests may change. */
  env: Record<string, string>;
  home: string;
  svc(...args: string[]): Promise<Ran>;
  /** The same user with parts of the `Io` replaced. */
  with(overrides: Partial<Io>): CliUser;
  /** The same user on another machine, where nothing is stored. */
  elsewhere(): CliUser;
}

/** A user of the CLI who is signed in to a test server. */
export async function cliUser(server: TestServer, user: string, groups: string[] = []): Promise<CliUser> {
  server.issuer.user = user;
  server.issuer.claims = { email_verified: true, groups };
  const token = await signInToken(server);
  return atHome(server, token);
}

function atHome(server: TestServer, token: string): CliUser {
  const home = configHome();
  const env = {
    SVC_SERVER: server.url,
    SVC_TOKEN: token,
    XDG_CONFIG_HOME: home,
    XDG_STATE_HOME: home,
  };
  const of = (overrides: Partial<Io>): CliUser => ({
    env,
    home,
    with: (more) => of({ ...overrides, ...more }),
    elsewhere: () => atHome(server, token),
    svc: async (...args) => {
      const io: TestIo = testIo({
        clock: server.clock,
        fetch: (url, init) => fetchAt(server, url, init),
        ...overrides,
        env,
      });
      const code = await run(args, io);
      return { code, ...io.out };
    },
  });
  return of({});
}

/** The same user, who waits for candidates as long as it takes: on a busy machine, longer than a real user would. */
export const patient = (user: CliUser): CliUser => user.with({ sleep: () => new Promise<never>(() => {}) });

/** The answer has the time of the test's clock, as everything else. */
export async function fetchAt(
  { clock }: TestServer,
  url: string,
  init: BunFetchRequestInit,
): Promise<Response> {
  const response = await fetch(url, init);
  response.headers.set("date", clock.now().toUTCString());
  return response;
}

/** A terminal with this many columns, and the text written to it. */
export function wideTerminal(columns: number): Output & { text: string } {
  const terminal = {
    isTTY: true,
    columns,
    text: "",
    write: (text: string) => {
      terminal.text += text;
    },
  };
  return terminal;
}
