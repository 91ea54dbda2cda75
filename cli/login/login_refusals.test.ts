import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import * as fs from "node:fs";
import { FakeServer, fakeToken } from "../../tests/support/cli/fake_server.ts";
import { type TestIo, testIo } from "../../tests/support/cli/io.ts";
import { readCredentials } from "../client/credentials_file.ts";
import { credentialsPath } from "../client/private_file.ts";
import { login } from "./login.ts";

let server: FakeServer;
let io: TestIo;

beforeEach(() => {
  server?.stop();
  server = new FakeServer();
  server.decide("success");
  io = testIo({
    env: { DISPLAY: ":0" },
    // The real clock: the fake server's tokens are made by it.
    clock: { now: () => new Date() },
    fetch: (url, init) => fetch(url, init),
  });
});
afterAll(() => server.stop());

const signIn = (options: Parameters<typeof login>[0] = {}, url = server.url) =>
  login({ user: "alice", ...options }, Object.assign(io, { server: url }));
const stored = () => readCredentials(io.env).servers[server.url];

describe("answers of a hostile server are neither opened nor stored", () => {
  const refused = async (message: string | RegExp) => {
    await expect(signIn()).rejects.toThrow(message);
    expect(io.opened).toEqual([]);
    expect(io.out.stderr).toBe("");
    expect(fs.existsSync(credentialsPath(io.env))).toBeFalse();
  };
  const generator = (change: Record<string, unknown>) => {
    server.generator = () => Response.json({ ...server.challenge(), ...change });
  };

  test("a page", async () => {
    server.generator = () => new Response("<html>", { headers: { "content-type": "text/html" } });
    await refused("an HTML page (HTTP 200)");
  });
  test("a redirect, even to itself", async () => {
    server.generator = () => Response.redirect(`${server.url}/elsewhere`);
    await refused(`redirects to ${server.url}/elsewhere, which svc does not follow`);
    expect(server.requests).toHaveLength(1);
  });
  test("an address of another server", async () => {
    generator({ challenge_url: "https://evil.example/c/T0" });
    await refused("a challenge_url of another server, https://evil.example");
  });
  test("a poller of another server", async () => {
    generator({ polling_url: "https://evil.example/p/T0" });
    await refused("a polling_url of another server, https://evil.example");
  });
  test("a file", async () => {
    generator({ challenge_url: "file:///etc/passwd" });
    await refused("a challenge_url that is not http or https (file:)");
  });
  test("a code that writes to the terminal", async () => {
    generator({ user_code: "\x1b]0;x\x07" });
    await refused("an invalid user_code");
  });
  test("a problem", async () => {
    server.generator = () =>
      Response.json(
        { code: "invalid_input", detail: "No such \x1b[1mname", request_id: "r1" },
        { status: 400 },
      );
    await refused("No such \uFFFD[1mname (request r1)");
  });
});

test.each([
  ["no token", "hello"],
  ["an expired one", fakeToken({ seconds: -1 })],
])("a success with %s is not stored", async (_name, encoded_jwt) => {
  server.poller = () => Response.json({ status: "success", encoded_jwt, user: "alice" });
  await expect(signIn()).rejects.toThrow("nothing was opened or stored");
  expect(stored()).toBeUndefined();
});

test("a user name that cannot be shown is not stored", async () => {
  const encoded_jwt = fakeToken({ user: "a\x1b[2J" });
  server.poller = () => Response.json({ status: "success", encoded_jwt, user: "b\x1b[2J" });
  await signIn();
  expect(stored()).toMatchObject({ user: "alice" });
});

test("for localhost instead of 127.0.0.1, it says which --server to use", async () => {
  const port = new URL(server.url).port;
  // Only the name in the URL differs; the request must reach the server, whatever localhost resolves to.
  io.fetch = (url, init) => fetch(url.replace("localhost", "127.0.0.1"), init);
  await expect(signIn({}, `http://localhost:${port}`)).rejects.toThrow(
    `the server at http://localhost:${port} calls itself ${server.url}; use --server ${server.url}`,
  );
});
