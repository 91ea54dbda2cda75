import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { closeChromium, Tab } from "../support/browser/chromium.ts";
import { signInAt } from "../support/browser/sign_in.ts";
import { Stack } from "../support/process/stack.ts";
import {
  decodeChallenge,
  decodePoll,
  decodeRoleArns,
  decodeWeepError,
  weepGet,
  weepLogin,
} from "../support/process/weep.ts";

/** The legacy client Netflix Weep, request by request: it must work unmodified. */

setDefaultTimeout(60_000);

/** Milliseconds. Weep's 3 s would only make the test slower. */
const tick = 300;
const user = "alice@example.com";
let stack: Stack;
beforeAll(async () => {
  // An interval that allows the shortened tick; Weep's own works with the default.
  stack = await Stack.start({ env: { SVC_CHALLENGE_INTERVAL: "1" } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await closeChromium();
});

const newChallenge = async () =>
  decodeChallenge(await weepGet(`${stack.url}/noauth/v1/challenge_generator/${user}`));

test("signs in, and its cookie gives access to the API", async () => {
  using tab = await Tab.open();
  const openBrowser = async (url: string) => {
    await tab.goto(url);
    await signInAt(tab);
    await tab.shows("Sign in a terminal?");
    expect(await tab.text()).toContain("Go-http-client/1.1");
    await tab.click("button[value=approve]");
    await tab.shows("Approved");
  };
  const { poll, statuses } = await weepLogin({ base: stack.url, user, tick, openBrowser });
  expect(new Set(statuses)).toEqual(new Set(["pending", "success"]));
  expect(poll.cookie_name).toBe("svc_auth");
  const now = Date.now() / 1000;
  expect(poll.expiration).toBeGreaterThan(now);
  expect(poll.expiration).toBeLessThan(now + 3601);
  const cookie = `${poll.cookie_name}=${poll.encoded_jwt}`;
  expect(JSON.parse(await weepGet(`${stack.url}/whoami`, { Cookie: cookie }))).toMatchObject({
    user,
    groups: ["admin"],
  });
  // The trial has no AWS account: Weep gets an empty list, and its error code for a role that is not in it.
  const roles = await weepGet(`${stack.url}/api/v1/get_roles?all=true`, { Cookie: cookie });
  expect(decodeRoleArns(roles)).toEqual([]);
  const stale = await weepGet(`${stack.url}/api/v2/get_roles?all=true`, { Cookie: `${cookie}x` });
  expect(decodeWeepError(stale).code).toBe("invalid_jwt");
  // No wait, no verifier: a legacy poll is never held.
  for (const { headers } of stack.polls()) {
    expect(headers.get("prefer")).toBeNull();
    expect(headers.get("authorization")).toBeNull();
  }
});

test("a denied challenge never succeeds", async () => {
  const challenge = await newChallenge();
  using tab = await Tab.open();
  await tab.goto(challenge.challenge_url);
  await signInAt(tab);
  await tab.shows("Sign in a terminal?");
  await tab.click("button[value=deny]");
  await tab.shows("Denied");
  expect(decodePoll(await weepGet(challenge.polling_url)).status).toBe("denied");
});

test("an expired challenge never succeeds", async () => {
  const challenge = await newChallenge();
  await stack.sql`update challenge set expires_at = now() where approved_at is null and denied_at is null`;
  expect(decodePoll(await weepGet(challenge.polling_url)).status).toBe("expired");
});

test("answers to unknown, malformed and too frequent polls decode, and are not a success", async () => {
  const { polling_url: url } = await newChallenge();
  const unknown = url.replace(/[^/]+$/, "A".repeat(43));
  for (const address of [unknown, url.replace(/[^/]+$/, "short"), `${url}x`]) {
    expect(decodePoll(await weepGet(address)).status).toBe("unknown");
  }
  for (let n = 0; n < 20; n++) expect(decodePoll(await weepGet(url)).status).toBe("pending");
});

test("answers to invalid requests also have a text status", async () => {
  for (const path of [
    "challenge_generator/",
    "challenge_generator/%20",
    "challenge_poller/",
    "nothing/here",
  ]) {
    const { status } = decodePoll(await weepGet(`${stack.url}/noauth/v1/${path}`));
    expect(status.length).toBeGreaterThan(0);
    expect(status).not.toBe("success");
  }
});

test("the decoder is as strict as Go's", () => {
  for (const body of [
    "<html>",
    "",
    "[]",
    '"success"',
    '{"status":1}',
    '{"secure":"true"}',
    '{"same_site":"lax"}',
    '{"expiration":"1"}',
    '{"expiration":1.5}',
  ]) {
    expect(() => decodePoll(body)).toThrow();
  }
  expect(decodePoll('{"status":"pending","more":{}}').status).toBe("pending");
});
