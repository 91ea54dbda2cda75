import { expect, test } from "bun:test";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { readToken } from "./token.ts";

const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const signed = (header: unknown, payload: unknown) => `${part(header)}.${part(payload)}.c2ln`;

test("a JWT that expires", () => {
  const token = fakeToken({ now: 1_700_000_000_000, seconds: 60, user: "bob@example.com" });
  expect(readToken(token)).toEqual({
    token,
    expiresAt: new Date(1_700_000_060_000),
    subject: "bob@example.com",
  });
});

test.each([
  ["no text", 7],
  ["empty", ""],
  ["two parts", "a.b"],
  ["a line break behind it, as in a header", `${fakeToken()}\n`],
  ["no JSON", "a.b.c"],
  ["alg none", signed({ alg: "none" }, { exp: 2_000_000_000 })],
  ["no alg", signed({}, { exp: 2_000_000_000 })],
  ["no exp", signed({ alg: "ES256" }, {})],
  ["an exp that is text", signed({ alg: "ES256" }, { exp: "2000000000" })],
  ["an exp beyond all days", signed({ alg: "ES256" }, { exp: 1e300 })],
  ["a payload that is a list", signed({ alg: "ES256" }, null)],
  ["too long", signed({ alg: "ES256" }, { exp: 2_000_000_000, pad: "x".repeat(20_000) })],
])("not a token: %s", (_name, text) => {
  expect(readToken(text)).toBeUndefined();
});
