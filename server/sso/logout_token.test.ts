import { describe, expect, test } from "bun:test";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT } from "jose";
import { TestClock } from "../../tests/support/clock.ts";
import { verifyLogoutToken } from "./logout_token.ts";
import { RemoteKeys } from "./remote_keys.ts";

const event = "http://schemas.openid.net/event/backchannel-logout";
const clock = new TestClock();
const now = clock.now().getTime() / 1000;
const expected = { issuer: "https://id.example.com", clientId: "svc", now: clock.now() };
const [own, stranger] = await Promise.all([generateKeyPair("RS256"), generateKeyPair("RS256")]);
const published = { reads: 0, key: own.publicKey };
const readKeys = async () => {
  published.reads += 1;
  return Response.json({ keys: [{ ...(await exportJWK(published.key)), kid: "k", alg: "RS256" }] });
};
const newKeys = (read: () => Promise<Response> = readKeys) =>
  new RemoteKeys("https://id.example.com/keys", read as unknown as typeof fetch, clock);

const good = {
  iss: "https://id.example.com",
  aud: ["other", "svc"],
  iat: now,
  exp: now + 120,
  jti: "1",
  sub: "alice",
  sid: "s",
  events: { [event]: {} },
};
const signed = (claims: object, { key = own.privateKey, typ = "logout+jwt" as string | undefined } = {}) =>
  new SignJWT({ ...claims }).setProtectedHeader({ alg: "RS256", kid: "k", typ }).sign(key);
const verify = async (token: string | Promise<string>, keys = newKeys()) =>
  verifyLogoutToken(await token, expected, keys);

test.each<[string, object, { typ?: string }]>([
  ["with both names", good, {}],
  ["of an issuer that sends no type", good, { typ: undefined }],
  ["of the type JWT", good, { typ: "JWT" }],
  ["without an end", { ...good, exp: undefined }, {}],
  ["that was delivered late", { ...good, iat: now - 299, exp: undefined }, {}],
])("a token %s is valid", async (_, claims, header) => {
  expect(await verify(signed(claims, header))).toEqual({
    issuer: good.iss,
    subject: "alice",
    sid: "s",
    jti: "1",
  });
});

describe("a token is refused", () => {
  test.each<[string, object, string]>([
    ["of another issuer", { iss: "https://evil.example" }, "another iss"],
    ["for another client", { aud: "other" }, "another aud"],
    ["that is old", { iat: now - 331, exp: undefined }, "no iat of the last 5 minutes"],
    ["from the future", { iat: now + 299 }, "expired, or is not signed"],
    ["without a time", { iat: undefined }, "no iat"],
    ["with a time that is a text", { iat: String(now) }, "expired, or is not signed"],
    ["that has expired", { exp: now - 31 }, "expired, or is not signed"],
    ["that is not valid yet", { nbf: now + 31 }, "expired, or is not signed"],
    ["without events", { events: undefined }, "no event"],
    ["with another event", { events: { "https://example.com/other": {} } }, "no event"],
    ["with an event that is no object", { events: { [event]: true } }, "no event"],
    ["with a nonce", { nonce: "n" }, "nonce"],
    ["without an id", { jti: undefined }, "no jti"],
    ["with an empty id", { jti: "" }, "no jti"],
    ["that names nobody", { sub: undefined, sid: undefined }, "neither sub nor sid"],
    ["with an empty subject", { sub: "" }, "invalid sub"],
    ["with a session that is no text", { sid: 7 }, "invalid sub or sid"],
    ["with a long session", { sid: "s".repeat(256) }, "invalid sub or sid"],
  ])("%s", async (_, claims, why) => {
    await expect(verify(signed({ ...good, ...claims }))).rejects.toThrow(why);
  });

  test("of another type", async () => {
    await expect(verify(signed(good, { typ: "at+jwt" }))).rejects.toThrow("another type");
  });

  test.each<[string, () => string | Promise<string>]>([
    ["by nobody", () => new UnsecuredJWT(good).encode()],
    ["by a stranger", () => signed(good, { key: stranger.privateKey })],
    [
      "with the public key as a secret",
      () => new SignJWT(good).setProtectedHeader({ alg: "HS256", kid: "k" }).sign(new Uint8Array(32)),
    ],
  ])("if it is signed %s", async (_, token) => {
    await expect(verify(token())).rejects.toThrow("not signed by the issuer");
  });

  test.each(["", "nonsense", "a.b.c"])("if it is no token: %j", async (token) => {
    await expect(verify(token)).rejects.toThrow("is not a signed token");
  });
});

test("a stranger's token costs no request for keys unless it could be the issuer's", async () => {
  published.reads = 0;
  const keys = newKeys();
  await expect(verify(signed({ ...good, iss: "x" }), keys)).rejects.toThrow("another iss");
  expect(published.reads).toBe(0);
});

test("a token that is signed with a new key is valid at once", async () => {
  const keys = newKeys();
  await verify(signed(good), keys);
  published.key = stranger.publicKey;
  expect(await verify(signed(good, { key: stranger.privateKey }), keys)).toMatchObject({ jti: "1" });
  published.key = own.publicKey;
});

test("keys that cannot be fetched say nothing about the token", async () => {
  const keys = newKeys(async () => new Response(null, { status: 503 }));
  await expect(verify(signed(good), keys)).rejects.toThrow("keys cannot be fetched");
});
