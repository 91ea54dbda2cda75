import { describe, expect, test } from "bun:test";
import { Unavailable } from "../../platform/errors.ts";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { NOW } from "../../tests/support/cli/io.ts";
import { readChallenge, readDecision, readUser } from "./answer.ts";

const server = { base: "https://svc.example", origin: "https://svc.example" };
const good = {
  challenge_url: "https://svc.example/challenge_validator/T0",
  polling_url: "https://svc.example/noauth/v1/challenge_poller/T0",
  expires_in: 90,
  interval: 3,
  user_code: "WXYZ-2345",
  binding: "S256",
};

describe("a challenge", () => {
  test("of a server that binds the verifier", () => {
    expect(readChallenge(good, server)).toEqual({
      challengeUrl: good.challenge_url,
      pollingUrl: good.polling_url,
      lifetime: 90,
      interval: 3,
      userCode: "WXYZ-2345",
      bound: true,
    });
  });

  test("of an old server lasts two minutes, with polls every two seconds and no code", () => {
    const { challenge_url, polling_url, user_code } = good;
    expect(readChallenge({ challenge_url, polling_url, user_code }, server)).toMatchObject({
      lifetime: 120,
      interval: 2,
      userCode: undefined,
      bound: false,
    });
  });

  test("unreasonable times are limited", () => {
    expect(readChallenge({ ...good, expires_in: 1e9, interval: 1e9 }, server)).toMatchObject({
      lifetime: 3600,
      interval: 30,
    });
    expect(readChallenge({ ...good, interval: -5 }, server)).toMatchObject({ interval: 0.1 });
  });

  const refused: [string, Record<string, unknown>, string][] = [
    ["no challenge_url", { challenge_url: undefined }, "an invalid challenge_url"],
    ["a relative challenge_url", { challenge_url: "/challenge_validator/T0" }, "an invalid challenge_url"],
    [
      "another origin",
      { challenge_url: "https://evil.example/" },
      "a challenge_url of another server, https://evil.example",
    ],
    [
      "another port",
      { challenge_url: "https://svc.example:444/" },
      "a challenge_url of another server, https://svc.example:444",
    ],
    [
      "http instead of https",
      { challenge_url: "http://svc.example/" },
      "a challenge_url of another server, http://svc.example",
    ],
    [
      "another origin to poll",
      { polling_url: "https://evil.example/" },
      "a polling_url of another server, https://evil.example",
    ],
    ["a file", { challenge_url: "file:///etc/passwd" }, "a challenge_url that is not http or https (file:)"],
    [
      "a script",
      { challenge_url: "javascript:alert(1)" },
      "a challenge_url that is not http or https (javascript:)",
    ],
    [
      "a user name",
      { challenge_url: "https://svc.example@evil.example/" },
      "a challenge_url with a user name in it",
    ],
    [
      "its own user name",
      { challenge_url: "https://a:b@svc.example/" },
      "a challenge_url with a user name in it",
    ],
    [
      "a huge address",
      { challenge_url: `https://svc.example/${"x".repeat(3000)}` },
      "an invalid challenge_url",
    ],
    ["an escape sequence as code", { user_code: "\x1b[2J" }, "an invalid user_code"],
    ["a text as code", { user_code: "x".repeat(40) }, "an invalid user_code"],
    ["an end that has come", { expires_in: 0 }, "an expired sign-in"],
    ["an end that is no number", { expires_in: "soon" }, "an invalid expires_in"],
    ["an interval that is text", { interval: "often" }, "an invalid interval"],
  ];
  for (const [name, change, what] of refused) {
    test(`refused: ${name}`, () => {
      expect(() => readChallenge({ ...good, ...change }, server)).toThrow(
        new Unavailable(`https://svc.example answered with ${what}; nothing was opened or stored`),
      );
    });
  }

  test("control characters are removed from an address before it is shown or opened", () => {
    const { challengeUrl } = readChallenge(
      { ...good, challenge_url: "https://svc.example/a\x1b]0;x\x07\n b" },
      server,
    );
    expect(challengeUrl).toBe("https://svc.example/a%1B]0;x%07%20b");
  });

  test("for localhost and 127.0.0.1 of one server, it says which name to use", () => {
    const local = { base: "http://localhost:8000", origin: "http://localhost:8000" };
    expect(() => readChallenge({ ...good, challenge_url: "http://127.0.0.1:8000/c/T0" }, local)).toThrow(
      new Unavailable(
        "the server at http://localhost:8000 calls itself http://127.0.0.1:8000; use --server http://127.0.0.1:8000",
      ),
    );
    // Another port is another server, on one machine too.
    expect(() => readChallenge({ ...good, challenge_url: "http://127.0.0.1:8001/c/T0" }, local)).toThrow(
      "of another server",
    );
  });
});

describe("a decision", () => {
  test.each(["pending", "denied", "expired", "unknown"] as const)("%s", (status) => {
    expect(readDecision({ status }, NOW, server)).toEqual({ status });
  });

  test("success", () => {
    const token = fakeToken({ now: NOW.getTime() });
    const body = { status: "success", encoded_jwt: token, user: "bob@example.com" };
    expect(readDecision(body, NOW, server)).toMatchObject({
      status: "success",
      token: { token },
      user: "bob@example.com",
    });
  });

  test.each([
    ["no status", {}, 'the status "undefined"'],
    ["a status of its own", { status: "\x1b[31mhm" }, 'the status "\uFFFD[31mhm"'],
    ["success without a token", { status: "success" }, "an invalid access token"],
    ["success with a page", { status: "success", encoded_jwt: "<html>" }, "an invalid access token"],
    [
      "success with a token that ends this very second",
      { status: "success", encoded_jwt: fakeToken({ now: NOW.getTime(), seconds: 0 }) },
      "an expired token (is the clock of this machine right?)",
    ],
  ])("refused: %s", (_name, body, what) => {
    expect(() => readDecision(body, NOW, server)).toThrow(
      new Unavailable(`https://svc.example answered with ${what}; nothing was opened or stored`),
    );
  });
});

test("a user name that cannot be shown is invalid", () => {
  expect(readUser("alice@example.com")).toBe("alice@example.com");
  expect(readUser("Ådne@example.com")).toBe("Ådne@example.com");
  for (const user of ["", "a\x1b[2J", "a\u202eb", "x".repeat(400), 7, undefined])
    expect(readUser(user)).toBeUndefined();
});
