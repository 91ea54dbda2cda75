import { beforeEach, expect, test } from "bun:test";
import type { Subscriber } from "../drizzle/connection/listener.ts";
import { forgetTokens, KnownTokens } from "./known_tokens.ts";

let subscriber: Subscriber;
let heard = true;
let tokens: KnownTokens;
beforeEach(() => {
  heard = true;
  const subscribe = (one: Subscriber) => {
    subscriber = one;
  };
  tokens = new KnownTokens({ subscribe, isHeard: () => heard });
  subscriber.listening!();
});

const known = (jti: string) => ({
  jti,
  user: "alice@example.com",
  groups: [],
  kid: "key",
  exp: 0,
  expiresAt: new Date(0),
});
const remember = (jti: string) => tokens.remember(`token ${jti}`, known(jti), tokens.sequence);
const recalls = (jti: string) => tokens.recall(`token ${jti}`)?.jti === jti;

test("a token is forgotten when its row changes, and others are not", () => {
  remember("a");
  remember("b");
  expect([recalls("a"), recalls("b")]).toEqual([true, true]);
  subscriber.channels.svc_token!("a");
  expect([recalls("a"), recalls("b")]).toEqual([false, true]);
});

test("what was read before a message is not remembered after it", () => {
  const { sequence } = tokens;
  subscriber.channels.svc_token!("a");
  tokens.remember("token a", known("a"), sequence);
  expect(recalls("a")).toBe(false);
});

test("without a listening connection, nothing is remembered", () => {
  remember("a");
  subscriber.lost!();
  expect(recalls("a")).toBe(false);
  remember("a");
  subscriber.listening!();
  expect(recalls("a")).toBe(false);
});

test("a revocation in this process needs no message", () => {
  const { sequence } = tokens;
  remember("a");
  forgetTokens();
  expect(recalls("a")).toBe(false);
  tokens.remember("token a", known("a"), sequence);
  expect(recalls("a")).toBe(false);
});

test("while the listening connection is silent, nothing is recalled", () => {
  remember("a");
  heard = false;
  expect(recalls("a")).toBe(false);
  heard = true;
  expect(recalls("a")).toBe(true);
});

test("at most 10,000 are remembered: the oldest makes room", () => {
  for (let i = 1; i <= 10_001; i += 1) remember(String(i));
  expect([recalls("1"), recalls("2"), recalls("10001")]).toEqual([false, true, true]);
});
