import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import { FakeServer, fakeToken } from "../../tests/support/cli/fake_server.ts";
import { configHome, fakeTerminal, type TestIo, testIo } from "../../tests/support/cli/io.ts";
import { withEntry } from "../client/credentials.ts";
import { readCredentials, updateCredentials } from "../client/credentials_file.ts";
import { credentialsPath } from "../client/private_file.ts";
import { Interrupted, UsageError } from "../errors.ts";
import { login, newVerifier } from "./login.ts";

let server: FakeServer;
let io: TestIo;

beforeEach(() => {
  server?.stop();
  server = new FakeServer();
  server.decide("success");
  io = testIo({
    env: { DISPLAY: ":0" },
    // The real clock, because the fake server's tokens use it.
    clock: { now: () => new Date() },
    fetch: (url, init) => fetch(url, init),
  });
});
afterAll(() => server.stop());

const signIn = (options: Parameters<typeof login>[0] = {}, url = server.url) =>
  login({ user: "alice", ...options }, Object.assign(io, { server: url }));
const stored = () => readCredentials(io.env).servers[server.url];
const generated = () => server.requests.filter(({ path }) => path.includes("challenge_generator"));

test("requests a challenge, shows address and code, opens the browser, waits, and stores the token", async () => {
  const expiresAt = new Date(server.expiresAt);
  expect(await signIn()).toEqual({
    server: server.url,
    user: "alice@example.com",
    expiresAt,
    storage: "file",
    reused: false,
  });
  expect(io.out).toEqual({
    stdout: "",
    stderr: `To sign in to ${server.url} as alice, open

  ${server.url}/challenge_validator/T0

The page must show this code: WXYZ-2345

Waiting for your approval in the browser, 2:00 left.
`,
  });
  expect(io.opened).toEqual([`${server.url}/challenge_validator/T0`]);
  expect(server.requests.map(({ path }) => path)).toEqual([
    expect.stringMatching(
      /^\/noauth\/v1\/challenge_generator\/alice\?code_challenge=[\w-]{43}&code_challenge_method=S256$/,
    ),
    "/noauth/v1/challenge_poller/T0",
  ]);
  expect(stored()).toEqual({
    user: "alice@example.com",
    storage: "file",
    token: server.token,
    expires_at: expiresAt.toISOString(),
  });
  expect(readCredentials(io.env).last).toBe(server.url);
});

test("sends the verifier only to the poller, and its hash to the generator", async () => {
  await signIn();
  const [generator, poller] = server.requests;
  const [, verifier] = /^Challenge ([\w-]{43})$/.exec(poller!.headers.get("authorization")!)!;
  expect(JSON.stringify(generator!.path)).not.toContain(verifier!);
  expect(generator!.headers.get("authorization")).toBeNull();
  expect(io.out.stderr).not.toContain(verifier!);
});

test("the verifier is 32 random bytes, sent as the S256 of their text (RFC 7636 4.2)", () => {
  const { verifier, challenge } = newVerifier();
  expect(verifier).toMatch(/^[\w-]{43}$/);
  expect(challenge).toBe(createHash("sha256").update(verifier, "ascii").digest("base64url"));
  expect(newVerifier().verifier).not.toBe(verifier);
});

test("shows no code and sends no verifier to an old server", async () => {
  server.generator = () => {
    const { challenge_url, polling_url } = server.challenge();
    return Response.json({ challenge_url, polling_url });
  };
  await signIn();
  expect(io.out.stderr).not.toContain("code");
  expect(server.requests.at(-1)!.headers.get("authorization")).toBeNull();
  expect(stored()).toMatchObject({ token: server.token });
});

describe("the user", () => {
  const name = async (user?: string) => {
    await signIn({ user, force: true });
    return decodeURIComponent(new URL(generated().at(-1)!.path, server.url).pathname.split("/").at(-1)!);
  };
  test("is the argument, else the last user of the server, else the name on this machine", async () => {
    expect(await name()).toBe("ada");
    expect(await name("bob")).toBe("bob");
    expect(await name()).toBe("alice@example.com");
  });
  test("a name that looks like a path stays one segment", async () => {
    expect(await name("../../whoami")).toBe("../../whoami");
    expect(await name("%2f")).toBe("%2f");
    expect(await name("Ådne?x#y")).toBe("Ådne?x#y");
  });
  test.each(["", "  ", ".", "..", "a\x1b[2J", "a\u202eb", "x".repeat(300)])(
    "%j is refused here",
    async (user) => {
      await expect(signIn({ user })).rejects.toBeInstanceOf(UsageError);
      expect(server.requests).toEqual([]);
    },
  );
});

describe("a valid token", () => {
  beforeEach(() => signIn());

  test("is reused if the server accepts it", async () => {
    expect(await signIn()).toMatchObject({ reused: true, user: "alice@example.com" });
    expect(await signIn({ user: undefined })).toMatchObject({ reused: true });
    expect(await signIn({ user: "ALICE@example.com" })).toMatchObject({ reused: true });
    expect(generated()).toHaveLength(1);
    expect(server.requests.at(-1)).toMatchObject({ path: "/whoami" });
  });
  test("is not used with --force", async () => {
    expect(await signIn({ force: true })).toMatchObject({ reused: false });
  });
  test("is not used for another user", async () => {
    expect(await signIn({ user: "bob" })).toMatchObject({ reused: false });
    expect(await signIn({ user: "alic" })).toMatchObject({ reused: false });
  });
  test("is not used if the server has revoked it", async () => {
    server.whoami = () => Response.json({ code: "unauthenticated" }, { status: 401 });
    expect(await signIn()).toMatchObject({ reused: false });
  });
  test.each([
    [403, "Your address is not allowed"],
    [500, "Something is broken"],
  ])("is neither used nor replaced if the server answers %p", async (status, detail) => {
    server.whoami = () => Response.json({ code: "any", detail }, { status });
    await expect(signIn()).rejects.toThrow(detail);
    expect(generated()).toHaveLength(1);
  });
  test.each([-26, 26])("is reused although the clock of this machine is wrong by %i hours", async (hours) => {
    io.clock = { now: () => new Date(Date.now() + hours * 3_600_000) };
    expect(await signIn()).toMatchObject({ reused: true });
    expect(generated()).toHaveLength(1);
  });
  test("is not used after it has expired", async () => {
    updateCredentials(io.env, (all) => {
      const entry = { ...all.servers[server.url]!, token: fakeToken({ seconds: -1 }) };
      return withEntry(all, server.url, entry);
    });
    expect(await signIn()).toMatchObject({ reused: false });
    expect(generated()).toHaveLength(2);
    expect(server.requests.filter(({ path }) => path === "/whoami")).toEqual([]);
  });
});

describe("the browser", () => {
  test.each([
    [{ browser: false }, {}, 0, ""],
    [{}, { SSH_TTY: "/dev/pts/1" }, 0, "Not opening a browser over SSH; use --browser to open one.\n"],
    [{ browser: true }, { SSH_TTY: "/dev/pts/1" }, 1, ""],
    [{}, { DISPLAY: "" }, 0, "Not opening a browser: there is no display.\n"],
  ])("%p with %p", async (options, env, opened, line) => {
    io.env = { ...io.env, ...env };
    await signIn(options);
    expect(io.opened).toHaveLength(opened);
    expect(io.out.stderr).toContain(`WXYZ-2345\n\n${line}Waiting`);
  });

  test("that fails to open is reported, and the sign-in continues", async () => {
    const { promise: noted, resolve } = Promise.withResolvers<void>();
    io.openBrowser = () => ({ failed: Promise.resolve("exit code 3") });
    io.stderr = {
      write: (text) => {
        io.out.stderr += text;
        if (text.includes("did not open")) resolve();
      },
    };
    server.poller = async () => {
      await noted;
      return Response.json({ status: "success", encoded_jwt: server.token });
    };
    await signIn();
    expect(io.out.stderr).toEndWith(
      "The browser did not open (exit code 3). Open the address above yourself.\n",
    );
  });
});

describe("the keychain", () => {
  test("stores the token, and the file refers to it", async () => {
    io.secrets = new Map();
    expect(await signIn({ keychain: true })).toMatchObject({ storage: "keychain" });
    expect([...io.secrets]).toEqual([[server.url, server.token]]);
    expect(fs.readFileSync(credentialsPath(io.env), "utf8")).not.toContain(server.token);
    expect(await signIn()).toMatchObject({ reused: true, storage: "keychain" });
    await signIn({ force: true });
    expect(io.secrets.size).toBe(0);
    expect(stored()).toMatchObject({ storage: "file", token: server.token });
  });

  test("that is missing is detected before the sign-in", async () => {
    await expect(signIn({ keychain: true })).rejects.toThrow("this machine has no keychain");
    expect(server.requests).toEqual([]);
  });

  test("does not reuse a valid token in the file", async () => {
    await signIn();
    io.secrets = new Map();
    expect(await signIn({ keychain: true })).toMatchObject({ reused: false, storage: "keychain" });
    expect(stored()).not.toHaveProperty("token");
  });
});

const revoked = () =>
  server.requests
    .filter(({ method, path }) => method === "DELETE" && path === "/tokens/current")
    .map(({ headers }) => headers.get("authorization"));

describe("a directory that cannot be written", () => {
  // A file in place of the directory, because root can write everywhere.
  const inTheWay = (name: string) => fs.mkdirSync(join(credentialsPath(io.env), "..", name));

  test("is detected before the approval", async () => {
    const blocked = join(configHome(), "file");
    fs.writeFileSync(blocked, "");
    io.env = { ...io.env, XDG_CONFIG_HOME: blocked };
    await expect(signIn()).rejects.toThrow(/cannot (create|read) .*svc/);
    expect(server.requests).toEqual([]);
  });

  test("even if the directory exists, and with --keychain, whose entry is in the file", async () => {
    io.secrets = new Map();
    await signIn();
    const before = server.requests.length;
    fs.rmSync(join(credentialsPath(io.env), "../credentials.lock"));
    inTheWay("credentials.lock");
    for (const keychain of [false, true])
      await expect(signIn({ force: true, keychain })).rejects.toThrow(/cannot lock /);
    expect(server.requests).toHaveLength(before);
  });

  test("a keychain that can be read but not written is detected as early", async () => {
    io.keychain = { ...io.keychain, get: async () => null, set: () => Promise.reject(new Error("locked")) };
    await expect(signIn({ keychain: true })).rejects.toThrow("this machine has no keychain");
    expect(server.requests).toEqual([]);
  });

  test("if it becomes unwritable before the approval, the token is revoked, and the error says so", async () => {
    server.poller = () => {
      inTheWay("credentials.json");
      return Response.json({ status: "success", encoded_jwt: server.token });
    };
    await expect(signIn()).rejects.toThrow(/credentials\.json is not a file.*; the token was revoked$/);
    expect(revoked()).toEqual([`Bearer ${server.token}`]);
  });

  test("if the server is then unreachable too, the error says how long the token is valid", async () => {
    server.poller = () => {
      inTheWay("credentials.json");
      return Response.json({ status: "success", encoded_jwt: server.token });
    };
    server.revoke = () => Response.json({ detail: "Not now" }, { status: 503 });
    await expect(signIn()).rejects.toThrow(
      /; the token could not be revoked \(Not now\) and is valid until 20\d\d-/,
    );
  });
});

describe("a clock of this machine that is wrong", () => {
  test.each([
    [-4000, "67 minutes behind"],
    [90, "2 minutes ahead of"],
    [26 * 3600, "1560 minutes ahead of"],
  ])("by %i s does not matter, and is mentioned before the browser opens", async (seconds, by) => {
    io.clock = { now: () => new Date(Date.now() + seconds * 1000) };
    let saidBefore = "";
    io.openBrowser = () => {
      saidBefore = io.out.stderr;
      return { failed: new Promise(() => {}) };
    };
    expect(await signIn()).toMatchObject({ reused: false, user: "alice@example.com" });
    const line = `The clock of this machine is ${by} that of ${server.url}, whose time svc uses.\n`;
    expect(saidBefore).toContain(line);
    expect(io.out.stderr.split(line)).toHaveLength(2);
    expect(io.out.stderr).toContain("Waiting for your approval in the browser, 2:00 left.");
    expect(revoked()).toEqual([]);
  });

  test("by seconds is not mentioned", async () => {
    io.clock = { now: () => new Date(Date.now() + 45_000) };
    await signIn();
    expect(io.out.stderr).not.toContain("clock");
  });

  test("does not lengthen or shorten the wait for a busy server", async () => {
    const real = io.clock;
    let requests = 0;
    server.generator = () => {
      requests += 1;
      return Response.json({ code: "too_many_requests" }, { status: 429, headers: { "retry-after": "200" } });
    };
    for (const seconds of [-26 * 3600, 26 * 3600]) {
      requests = 0;
      io.clock = { now: () => new Date(real.now().getTime() + seconds * 1000) };
      await expect(signIn()).rejects.toThrow("try again in 200 s");
      expect(requests).toBe(4);
    }
  });
});

test("a token that has expired is revoked", async () => {
  const encoded_jwt = fakeToken({ seconds: -1 });
  server.poller = () => Response.json({ status: "success", encoded_jwt });
  await expect(signIn()).rejects.toThrow(/an expired token .*; the token was revoked$/);
  expect(revoked()).toEqual([`Bearer ${encoded_jwt}`]);
});

describe("the token that is replaced is revoked", () => {
  let seconds = 3600;
  const next = () => {
    const encoded_jwt = fakeToken({ seconds: seconds++ });
    server.poller = () => Response.json({ status: "success", encoded_jwt });
    return encoded_jwt;
  };
  test.each([
    ["with --force", { force: true }],
    ["by a login as another user", { user: "bob" }],
  ])("%s", async (_, options) => {
    const first = next();
    await signIn();
    const second = next();
    await signIn(options);
    expect(revoked()).toEqual([`Bearer ${first}`]);
    expect(stored()).toMatchObject({ token: second });
  });

  test("from the file to the keychain, and back", async () => {
    io.secrets = new Map();
    const tokens = [next()];
    await signIn();
    for (const keychain of [true, true, false]) {
      tokens.push(next());
      await signIn({ force: true, keychain });
    }
    expect(revoked()).toEqual(tokens.slice(0, 3).map((token) => `Bearer ${token}`));
    expect(io.secrets.size).toBe(0);
    expect(stored()).toMatchObject({ storage: "file", token: tokens[3] });
  });

  test("even if the server then issues no certificate", async () => {
    const first = next();
    await signIn();
    next();
    await expect(signIn({ force: true, certificate: true })).rejects.toThrow(
      "signed in, but without a certificate: No such page",
    );
    expect(revoked()).toEqual([`Bearer ${first}`]);
  });

  test("if the server cannot revoke it, prints a warning and still signs in", async () => {
    next();
    await signIn();
    const second = next();
    server.revoke = () => Response.json({ detail: "Not now" }, { status: 503 });
    await signIn({ force: true });
    expect(stored()).toMatchObject({ token: second });
    expect(io.out.stderr).toMatch(
      /svc: warning: the replaced token could not be revoked \(Not now\) and is valid until .*\n$/,
    );
  });
});

describe("a server that is busy", () => {
  const busy = (status: number, times: number, headers: Record<string, string> = { "retry-after": "3" }) => {
    let left = times;
    server.generator = () =>
      left-- > 0
        ? Response.json({ status: "too_many_requests" }, { status, headers })
        : Response.json(server.challenge());
  };
  test.each([
    [429, { "retry-after": "3" }, [3000, 3000], "3 s", "too many sign-in requests from this address"],
    [429, {}, [1000, 1000], "1 s", "too many sign-in requests from this address"],
    [503, { "retry-after": "3" }, [3000, 3000], "3 s", "the server is busy"],
  ] as const)("%p %p: waits as told, and says so once", async (status, headers, slept, seconds, why) => {
    busy(status, 2, headers);
    await signIn();
    expect(io.slept.slice(0, 2)).toEqual([...slept]);
    expect(io.out.stderr).toStartWith(
      `Waiting ${seconds} at the request of ${server.url}: ${why}. Press Ctrl-C to cancel.\nTo sign in to `,
    );
    expect(stored()).toMatchObject({ token: server.token });
  });

  test("for ten minutes: gives up", async () => {
    const { clock } = testIo();
    let now = clock.now().getTime();
    io.clock = { now: () => new Date(now) };
    io.sleep = async (milliseconds) => {
      now += milliseconds;
    };
    busy(429, Number.POSITIVE_INFINITY, { "retry-after": "30" });
    await expect(signIn()).rejects.toThrow("try again in 30 s");
    expect(generated()).toHaveLength(21);
  });

  test("a pause beyond ten minutes is not begun", async () => {
    busy(429, 1, { "retry-after": "601" });
    await expect(signIn()).rejects.toThrow("try again in 601 s");
    expect(io.slept).toEqual([]);
  });

  test("503 without Retry-After is an error", async () => {
    busy(503, 1, {});
    await expect(signIn()).rejects.toThrow("answered HTTP 503");
  });
});

describe("a hostile server: nothing is opened or stored", () => {
  test.each([
    ["a page", new Response("<html>"), "an HTML page (HTTP 200)"],
    ["a redirect", Response.redirect("http://127.0.0.1/elsewhere"), "which svc does not follow"],
    [
      "an address of another server",
      Response.json({ challenge_url: "https://evil.example/c", polling_url: "https://evil.example/p" }),
      "a challenge_url of another server, https://evil.example",
    ],
  ])("%s", async (_name, answer, message) => {
    server.generator = () => answer;
    await expect(signIn()).rejects.toThrow(message);
    expect([io.opened, io.out.stderr, server.requests.length]).toEqual([[], "", 1]);
    expect(fs.existsSync(credentialsPath(io.env))).toBeFalse();
  });

  test("a user name that cannot be shown", async () => {
    const encoded_jwt = fakeToken({ user: "a\x1b[2J" });
    server.poller = () => Response.json({ status: "success", encoded_jwt, user: "b\x1b[2J" });
    await signIn();
    expect(stored()).toMatchObject({ user: "alice" });
  });
});

test("a corrupt file is found out before anybody signs in", async () => {
  await signIn();
  fs.writeFileSync(credentialsPath(io.env), "{");
  const before = server.requests.length;
  await expect(signIn()).rejects.toThrow("is corrupt; to fix it");
  expect(server.requests).toHaveLength(before);
});

test("SVC_TOKEN takes precedence over the new token: a warning", async () => {
  io.env = { ...io.env, SVC_TOKEN: server.token };
  await signIn();
  expect(io.out.stderr).toEndWith(
    "svc: warning: SVC_TOKEN is set and takes precedence over the token stored now\n",
  );
});

test("Ctrl-C while it waits: nothing is stored", async () => {
  server.poller = () => new Promise<Response>(() => {});
  void server.polled.then(() => io.interrupt());
  await expect(signIn()).rejects.toBeInstanceOf(Interrupted);
  expect(stored()).toBeUndefined();
});

test("Ctrl-C brings the cursor back before anything else happens: the process ends next", async () => {
  const terminal = fakeTerminal();
  io.stderr = terminal;
  server.poller = () => new Promise<Response>(() => {});
  const { promise: shown, resolve } = Promise.withResolvers<string[]>();
  void server.polled.then(() => {
    io.interrupt();
    resolve(terminal.shown.slice(-1));
  });
  await expect(signIn()).rejects.toBeInstanceOf(Interrupted);
  expect(await shown).toEqual(["<show cursor>"]);
});
