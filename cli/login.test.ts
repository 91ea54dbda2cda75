import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { FakeServer } from "../tests/support/cli/fake_server.ts";
import { configHome } from "../tests/support/cli/io.ts";
import { spawnSvc, svc } from "../tests/support/cli/process.ts";

/** The client's commands as processes, against a fake server. */

let server: FakeServer;
let env: Record<string, string>;

beforeEach(() => {
  server = new FakeServer();
  env = { XDG_CONFIG_HOME: configHome(), SVC_SERVER: server.url };
});
afterEach(() => server.stop());

/** The processes run with TZ=UTC. */
const until = () => server.expiresAt.slice(0, 16).replace("T", " ");
const invitation = () =>
  `To sign in to ${server.url} as alice, open\n\n  ${server.url}/challenge_validator/T0\n\nThe page must show this code: WXYZ-2345\n\n`;

describe("from signing in to signing out", () => {
  test("for people", async () => {
    server.decide("success");
    const as = `${server.url} as alice@example.com until ${until()}`;
    expect(await svc(["login", "alice", "--no-browser"], env)).toEqual({
      code: 0,
      stdout: `Signed in to ${as}\n`,
      stderr: `${invitation()}Waiting for your approval in the browser, 2:00 left.\n`,
    });
    const { SVC_SERVER: _, ...remembered } = env;
    expect(await svc(["login"], remembered)).toEqual({
      code: 0,
      stdout: `Already signed in to ${as}; use --force to sign in again\n`,
      stderr: "",
    });
    expect(await svc(["whoami"], remembered)).toEqual({
      code: 0,
      stdout: `User    alice@example.com\nGroups  admin, oncall\nAdmin   yes\nServer  ${server.url}\nUntil   ${until()}\n`,
      stderr: "",
    });
    expect(await svc(["token"], remembered)).toEqual({ code: 0, stdout: `${server.token}\n`, stderr: "" });
    expect(await svc(["logout"], remembered)).toEqual({
      code: 0,
      stdout: `Signed out of ${server.url} as alice@example.com\n`,
      stderr: "",
    });
    expect(await svc(["logout"], remembered)).toEqual({
      code: 0,
      stdout: "Nothing to do: not signed in\n",
      stderr: "",
    });
    const stderr = `svc: not signed in to ${server.url}; run svc login\n`;
    expect(await svc(["whoami"], remembered)).toEqual({ code: 4, stdout: "", stderr });
    expect(await svc(["token"], remembered)).toEqual({ code: 4, stdout: "", stderr });
  });

  test("with groups that cannot be shown, which appear escaped", async () => {
    server.decide("success");
    server.whoami = () => {
      const groups = ["oncall", "", "on\u00adcall", "\u202egnp.exe", "\x1b[2J"];
      const { expiresAt: expires_at } = server;
      return Response.json({ user: "alice@example.com", groups, admin: false, expires_at });
    };
    await svc(["login", "alice", "--no-browser"], env);
    expect(await svc(["login"], env)).toMatchObject({ code: 0, stdout: expect.stringContaining("Already") });
    const { code, stdout, stderr } = await svc(["whoami"], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain('Groups  oncall, "", "on\ufffdcall", "\\u202egnp.exe", "\\u001b[2J"\n');
  });

  test("for programs", async () => {
    server.decide("success");
    const json = async (...args: string[]) => {
      const { code, stdout } = await svc([...args, "--json"], env);
      expect({ code, lines: stdout.split("\n").length }).toEqual({ code: 0, lines: 2 });
      return JSON.parse(stdout);
    };
    const [user, expires_at] = ["alice@example.com", server.expiresAt];
    const signedIn = { server: server.url, user, expires_at, storage: "file" };
    expect(await json("login", "alice")).toEqual({ ...signedIn, reused: false });
    expect(await json("login", "alice")).toEqual({ ...signedIn, reused: true });
    expect(await json("whoami")).toEqual({
      server: server.url,
      user,
      groups: ["admin", "oncall"],
      admin: true,
      expires_at,
    });
    expect(await json("token")).toEqual({ server: server.url, user, token: server.token, expires_at });
    expect(await json("logout")).toEqual([{ server: server.url, user, revoked: true }]);
    expect(await json("logout")).toEqual([]);
  });
});

test("without a name on this machine, as in a container, USER is required", async () => {
  const { code, stderr } = await svc(["login", "--no-browser"], env);
  expect({ code, stderr }).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("missing argument: USER (USER and LOGNAME are not set)"),
  });
  server.decide("success");
  const named = await svc(["login", "--no-browser"], { ...env, LOGNAME: "alice" });
  expect(named).toMatchObject({ code: 0, stderr: expect.stringContaining("as alice, open") });
});

test("a machine without a keychain", async () => {
  const stderr = "svc: this machine has no keychain that svc can use; sign in without --keychain\n";
  // No session bus to reach one, wherever this runs.
  const alone = {
    ...env,
    DBUS_SESSION_BUS_ADDRESS: "unix:path=/nonexistent",
    XDG_RUNTIME_DIR: "/nonexistent",
  };
  expect(await svc(["login", "alice", "--keychain"], alone)).toEqual({ code: 1, stdout: "", stderr });
  expect(server.requests).toEqual([]);
});

test("BROWSER is run with the address, and a slow one does not hold the terminal", async () => {
  const opened = Promise.withResolvers<string>();
  const recorder = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: async (request) => {
      opened.resolve(await request.text());
      return new Response(new ReadableStream());
    },
  });
  const script = join(env.XDG_CONFIG_HOME!, "browser.ts");
  const post = `await (await fetch("${recorder.url}", { method: "POST", body: process.argv[2] })).text();`;
  await Bun.write(script, post);
  const { finished } = spawnSvc(["login", "alice"], { ...env, BROWSER: `${process.execPath} ${script}` });
  expect(await opened.promise).toBe(`${server.url}/challenge_validator/T0`);
  server.decide("success");
  expect(await finished).toMatchObject({ code: 0 });
  await recorder.stop(true);
});
