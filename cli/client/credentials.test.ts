import { describe, expect, test } from "bun:test";
import {
  type Credentials,
  formatCredentials,
  parseCredentials,
  withEntry,
  withoutToken,
} from "./credentials.ts";

const expires_at = "2026-01-02T04:04:05.000Z";
const credentials: Credentials = {
  last: "http://a.example",
  servers: {
    "http://a.example": { user: "alice@example.com", storage: "file", token: "a.b.c", expires_at },
    "http://b.example": { user: "alice@example.com", storage: "keychain", expires_at },
    "http://c.example": { user: "bob@example.com" },
  },
};

test("a written file can be read", () => {
  expect(parseCredentials(formatCredentials(credentials))).toEqual(credentials);
});

describe("corrupt", () => {
  const file = (entry: unknown) => JSON.stringify({ version: 1, servers: { "http://a.example": entry } });
  test.each([
    ["empty", ""],
    ["cut off", formatCredentials(credentials).slice(0, 60)],
    ["null", "null"],
    ["a list", "[]"],
    ["another version", '{"version":2,"servers":{}}'],
    ["no servers", '{"version":1}'],
    ["servers as a list", '{"version":1,"servers":[]}'],
    ["last is no text", '{"version":1,"last":1,"servers":{}}'],
    ["an entry without a user", file({})],
    ["a user that cannot be shown", file({ user: "\x1b[2J" })],
    ["a file entry without a token", file({ user: "a", storage: "file", expires_at })],
    ["a token without a storage", file({ user: "a", token: "a.b.c" })],
    ["a keychain entry with a token", file({ user: "a", storage: "keychain", token: "a.b.c", expires_at })],
    ["another storage", file({ user: "a", storage: "cloud", expires_at })],
    ["an end that is no time", file({ user: "a", storage: "file", token: "a.b.c", expires_at: "soon" })],
  ])("%s", (_name, text) => {
    expect(parseCredentials(text)).toBeUndefined();
  });
});

test("a sign-in replaces only the entry of its server", () => {
  const changed = withEntry(credentials, "http://c.example", { user: "carol@example.com" });
  expect(changed).toEqual({
    last: "http://c.example",
    servers: { ...credentials.servers, "http://c.example": { user: "carol@example.com" } },
  });
});

test("signing out keeps the user and deletes the token", () => {
  expect(withoutToken(credentials, "http://a.example").servers["http://a.example"]).toEqual({
    user: "alice@example.com",
  });
  expect(withoutToken(credentials, "http://x.example")).toEqual(credentials);
});
