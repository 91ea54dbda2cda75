import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { Unavailable } from "../../platform/errors.ts";
import { FakeServer, fakeToken } from "../../tests/support/cli/fake_server.ts";
import { type TestIo, testIo } from "../../tests/support/cli/io.ts";
import { type Entry, withEntry } from "../client/credentials.ts";
import { readCredentials, updateCredentials } from "../client/credentials_file.ts";
import { credentialsPath } from "../client/private_file.ts";
import { logout } from "./logout.ts";

let server: FakeServer;
let io: TestIo;

beforeEach(() => {
  server = new FakeServer();
  io = testIo({ clock: { now: () => new Date() }, fetch: (url, init) => fetch(url, init) });
});
afterEach(() => server.stop());

function store(base: string, change: Partial<Entry> = {}) {
  const entry: Entry = {
    user: "alice@example.com",
    storage: "file",
    token: server.token,
    expires_at: server.expiresAt,
    ...change,
  };
  updateCredentials(io.env, (all) => withEntry(all, base, entry));
}
const entries = () => readCredentials(io.env).servers;

test("revokes and deletes the token, but keeps the user", async () => {
  store(server.url);
  expect(await logout({}, io)).toEqual([{ server: server.url, user: "alice@example.com", revoked: true }]);
  expect(server.requests.map(({ method, path }) => `${method} ${path}`)).toEqual(["DELETE /tokens/current"]);
  expect(server.requests[0]!.headers.get("authorization")).toBe(`Bearer ${server.token}`);
  expect(entries()).toEqual({ [server.url]: { user: "alice@example.com" } });
  expect(await logout({}, io)).toEqual([]);
});

test("deletes an invalid token without an error", async () => {
  server.revoke = () => Response.json({ code: "unauthenticated" }, { status: 401 });
  store(server.url);
  expect(await logout({}, io)).toMatchObject([{ revoked: false }]);
  store(server.url);
  updateCredentials(io.env, (all) => {
    const entry = { ...all.servers[server.url]!, token: fakeToken({ seconds: -1 }) };
    return withEntry(all, server.url, entry);
  });
  expect(await logout({}, io)).toMatchObject([{ revoked: false }]);
  expect(server.requests.map(({ path }) => path)).toEqual(["/tokens/current"]);
  expect(entries()[server.url]).not.toHaveProperty("token");
});

test.each([-2, 2])("revokes the token although the clock is wrong by %i hours", async (hours) => {
  store(server.url);
  io.clock = { now: () => new Date(Date.now() + hours * 3_600_000) };
  expect(await logout({}, io)).toMatchObject([{ revoked: true }]);
});

test("deletes the token and reports it if the server cannot be reached", async () => {
  server.revoke = () => Response.json({ code: "internal", detail: "Oops" }, { status: 500 });
  store(server.url);
  await expect(logout({}, io)).rejects.toEqual(
    new Unavailable(`Oops; deleted here, but the token is valid until ${server.expiresAt}`),
  );
  expect(entries()[server.url]).not.toHaveProperty("token");
});

test("signs out of the chosen server; with --all, of every server, and forgets the users", async () => {
  const other = new FakeServer();
  store(other.url, { token: other.token });
  store(server.url);
  expect(await logout({}, { ...io, server: other.url })).toHaveLength(1);
  expect([server.requests.length, other.requests.length]).toEqual([0, 1]);
  store(other.url, { token: other.token });
  expect(await logout({ all: true }, io)).toHaveLength(2);
  expect(readCredentials(io.env)).toEqual({ servers: {} });
  other.stop();
});

test("with --all, one unreachable server does not stop the others", async () => {
  const dead = new FakeServer();
  dead.stop();
  store(dead.url);
  store(server.url);
  await expect(logout({ all: true }, io)).rejects.toThrow(`cannot reach ${dead.url}`);
  expect(server.requests).toHaveLength(1);
  expect(readCredentials(io.env)).toEqual({ servers: {} });
});

test("revokes every token even if it cannot be deleted here", async () => {
  const other = new FakeServer();
  store(other.url, { token: other.token });
  store(server.url);
  const lock = join(dirname(credentialsPath(io.env)), "credentials.lock");
  rmSync(lock);
  mkdirSync(lock);
  await expect(logout({ all: true }, io)).rejects.toThrow(/^cannot lock /);
  expect([server.requests.length, other.requests.length]).toEqual([1, 1]);
  other.stop();
});

test("with --all, keeps what other processes store meanwhile", async () => {
  const certificate = {
    user: "alice@example.com",
    url: "https://b.example",
    key: "file" as const,
    sign_in_expires_at: server.expiresAt,
  };
  server.revoke = () => {
    store("https://a.example");
    // A sign-out that ended its token does not know of it.
    store("https://b.example", { storage: undefined, token: undefined, expires_at: undefined, certificate });
    return new Response(null, { status: 204 });
  };
  store(server.url);
  expect(await logout({ all: true }, io)).toHaveLength(1);
  expect(Object.keys(entries())).toEqual(["https://a.example", "https://b.example"]);
});

test("deletes the token from the keychain", async () => {
  io.secrets = new Map([[server.url, server.token]]);
  store(server.url, { storage: "keychain", token: undefined });
  expect(await logout({}, io)).toMatchObject([{ revoked: true }]);
  expect(io.secrets.size).toBe(0);
});
