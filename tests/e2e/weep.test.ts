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

/** The legacy client, Netflix Weep, request by request: it has to work as it is. */

setDefaultTimeout(60_000);

/** Milliseconds. Weep's 3 s cost nothing here but time. */
const tick = 300;
const user = "alice@example.com";
let stack: Stack;
beforeAll(async () => {
  // An interval that lets the shortened tick pass; with Weep's own the default does.
  stack = await Stack.start({ env: { SVC_CHALLENGE_INTERVAL: "1" } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await closeChromium();
});

const newChallenge = async () =>
  decodeChallenge(await weepGet(`${stack.url}/noauth/v1/challenge_generator/${user}`));

test("is signed in, and its cookie opens the API", async () => {
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
  // The trial has no AWS account: Weep gets its list, and its own code for what is not in it.
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

test("denied", async () => {
  const challenge = await newChallenge();
  using tab = await Tab.open();
  await tab.goto(challenge.challenge_url);
  await signInAt(tab);
  await tab.shows("Sign in a terminal?");
  await tab.click("button[value=deny]");
  await tab.shows("Denied");
  expect(decodePoll(await weepGet(challenge.polling_url)).status).toBe("denied");
});

test("expired", async () => {
  const challenge = await newChallenge();
  await stack.sql`update challenge set expires_at = now() where approved_at is null and denied_at is null`;
  expect(decodePoll(await weepGet(challenge.polling_url)).status).toBe("expired");
});

test("unknown, malformed, polled too fast: each decodes, and none is success", async () => {
  const { polling_url: url } = await newChallenge();
  const unknown = url.replace(/[^/]+$/, "A".repeat(43));
  for (const address of [unknown, url.replace(/[^/]+$/, "short"), `${url}x`]) {
    expect(decodePoll(await weepGet(address)).status).toBe("unknown");
  }
  for (let n = 0; n < 20; n++) expect(decodePoll(await weepGet(url)).status).toBe("pending");
});

test("the answers to what cannot be have a text as status, too", async () => {
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
