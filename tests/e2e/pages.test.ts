import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  setDefaultTimeout,
  test,
} from "bun:test";
import { closeChromium, Tab } from "../support/browser/chromium.ts";
import { type Ask, ask, signInAt } from "../support/browser/sign_in.ts";
import { Stack } from "../support/process/stack.ts";

/** Every page in a real browser: its content, behaviour, appearance and accessibility. */

setDefaultTimeout(180_000);

let stack: Stack;
let tab: Tab;
beforeAll(async () => {
  stack = await Stack.start({ env: { SVC_RATE_GENERATE: "1000" } });
});
afterAll(async () => {
  await stack?.[Symbol.asyncDispose]();
  await closeChromium();
});
beforeEach(async () => {
  tab = await Tab.open();
});
afterEach(() => {
  // Our pages load nothing that their policy forbids, and nobody injects anything into them.
  const refusals = tab.refusals.filter((refusal) => refusal.startsWith(stack.url));
  tab.close();
  expect(refusals).toEqual([]);
});

/** The terminal's challenge. */
async function status({ polling_url, verifier }: Ask): Promise<unknown> {
  const headers: Record<string, string> = verifier ? { authorization: `Challenge ${verifier}` } : {};
  return ((await (await fetch(polling_url, { headers })).json()) as { status: unknown }).status;
}

/** Opens the approve page of a new challenge, with that user signed in. */
async function atApprovePage(user?: string, legacy = false): Promise<Ask> {
  const challenge = await ask(stack, user, legacy);
  await tab.goto(challenge.challenge_url);
  await signInAt(tab);
  await tab.shows("Sign in a terminal?");
  return challenge;
}

describe("the sign-in page", () => {
  test("says that it is a trial, and which users exist", async () => {
    await tab.goto((await ask(stack)).challenge_url);
    await tab.shows("Sign in");
    expect(await tab.text()).toContain("This is the trial sign-in provider");
    expect(await tab.text()).toContain("trial-password");
    expect(await tab.inspect("sign-in")).toEqual([]);
  });

  test("refuses a wrong password with a message, and then accepts the right one", async () => {
    const challenge = await ask(stack);
    await tab.goto(challenge.challenge_url);
    await signInAt(tab, { password: "wrong-password" });
    await tab.says("User or password is wrong");
    expect(await tab.status()).toBe(401);
    expect(await tab.inspect("sign-in-refused")).toEqual([]);
    expect(await status(challenge)).toBe("pending");
    await signInAt(tab);
    await tab.shows("Sign in a terminal?");
  });

  test("Cancel leads back to svc, which says that nobody was signed in", async () => {
    const challenge = await ask(stack);
    await tab.goto(challenge.challenge_url);
    await tab.shows("Sign in");
    await tab.click("button[name=cancel]");
    await tab.shows("Not signed in");
    expect(await tab.text()).toContain("access was denied");
    expect(await tab.inspect("sign-in-cancelled")).toEqual([]);
    expect(await status(challenge)).toBe("pending");
  });

  test("is an error page without a challenge", async () => {
    await tab.goto(`${stack.issuer}/sign-in/nothing`);
    await tab.shows("Sign-in cannot continue");
    expect(await tab.inspect("sign-in-error")).toEqual([]);
  });
});

describe("the approve page", () => {
  test("shows the facts and two equal buttons without scrolling on a phone, and approves", async () => {
    const challenge = await atApprovePage();
    const text = await tab.text();
    for (const fact of ["alice@example.com", challenge.user_code!, "127.0.0.1"]) expect(text).toContain(fact);
    expect(text).toMatch(/Requested\s+\d+ seconds? ago/);
    expect(await tab.inspect("approve")).toEqual([]);
    await tab.resize(390, 844);
    const buttons = await tab.ask<{ width: number; height: number; bottom: number }[]>(
      "[...document.querySelectorAll('.choice button')].map((one) => one.getBoundingClientRect().toJSON())",
    );
    expect(buttons).toHaveLength(2);
    expect(buttons[0]!.width).toBe(buttons[1]!.width);
    expect(buttons[0]!.height).toBe(buttons[1]!.height);
    for (const { bottom, height } of buttons) {
      expect(bottom).toBeLessThan(844);
      expect(height).toBeGreaterThanOrEqual(44);
    }
    await tab.click("button[value=approve]");
    await tab.shows("Approved");
    expect(await tab.inspect("approved")).toEqual([]);
    expect(await status(challenge)).toBe("success");
    await tab.reload();
    await tab.shows("Approved");
    expect(await tab.text()).toContain("Your terminal is signed in");
  });

  test("Deny", async () => {
    const challenge = await atApprovePage();
    await tab.click("button[value=deny]");
    await tab.shows("Denied");
    expect(await tab.inspect("denied")).toEqual([]);
    expect(await status(challenge)).toBe("denied");
  });

  test("warns about a legacy client, which has no code to compare", async () => {
    const challenge = await atApprovePage("alice@example.com", true);
    const text = await tab.text();
    expect(text).toContain("This client shows no code to compare");
    expect(await tab.ask<number>("document.querySelectorAll('.code').length")).toBe(0);
    expect(await tab.inspect("approve-legacy")).toEqual([]);
    await tab.click("button[value=approve]");
    await tab.shows("Approved");
    expect(await status(challenge)).toBe("success");
  });

  test("is only for the terminal's user: bob is asked to sign in as alice", async () => {
    const challenge = await ask(stack);
    await tab.goto(challenge.challenge_url);
    await signInAt(tab, { user: "bob" });
    await tab.shows("You are signed in as somebody else");
    expect(await tab.text()).toContain("bob@example.com");
    expect(await tab.inspect("other-user")).toEqual([]);
    expect(await tab.ask<number>("document.querySelectorAll('button[name=decision]').length")).toBe(0);
    await tab.click("main form button");
    await signInAt(tab, { user: "alice@example.com" });
    await tab.shows("Sign in a terminal?");
    await tab.click("button[value=approve]");
    await tab.shows("Approved");
    expect(await status(challenge)).toBe("success");
  });

  test("expires", async () => {
    const challenge = await atApprovePage();
    const id = (await tab.address()).split("/").at(-1)!;
    await stack.sql`update challenge set expires_at = now() where id = ${id}`;
    await tab.click("button[value=approve]");
    await tab.shows("Too late");
    expect(await tab.inspect("too-late")).toEqual([]);
    expect(await status(challenge)).toBe("expired");
  });

  test("refuses a forged form", async () => {
    const challenge = await atApprovePage();
    await tab.ask("document.querySelector('[name=csrf]').value = 'forged'");
    await tab.click("button[value=approve]");
    await tab.shows("Not allowed");
    expect(await tab.status()).toBe(403);
    expect(await tab.inspect("not-allowed")).toEqual([]);
    expect(await status(challenge)).toBe("pending");
  });

  test("opens only in the first browser", async () => {
    const challenge = await atApprovePage();
    using other = await Tab.open();
    await other.goto(challenge.challenge_url);
    await other.shows("This sign-in request is not open");
    expect(await other.status()).toBe(404);
    expect(await other.inspect("not-open")).toEqual([]);
    expect(await status(challenge)).toBe("pending");
  });
});

test("too many attempts: the page says so, and how to go on", async () => {
  const challenge = await ask(stack);
  await tab.goto(challenge.challenge_url);
  await tab.shows("Sign in");
  const [row] = await stack.sql`select id from challenge order by created_at desc limit 1`;
  for (let visits = 1; visits <= 10; visits += 1) await tab.goto(`${stack.url}/approve/${row!.id}`);
  await tab.shows("Too many requests");
  expect(await tab.status()).toBe(429);
  expect(await tab.inspect("too-many")).toEqual([]);
  expect(await tab.ask<string>("document.querySelector('a.button').href")).toBe(await tab.address());
});

test("if the provider is down, the page says so, and reloading it continues", async () => {
  await using down = await Stack.start();
  const challenge = await ask(down);
  await down.idp.stop();
  await tab.goto(challenge.challenge_url);
  await tab.shows("Temporarily unavailable");
  expect(await tab.status()).toBe(503);
  expect(await tab.inspect("provider-down")).toEqual([]);
  await down.startIdp();
  await tab.reload();
  await signInAt(tab);
  await tab.shows("Sign in a terminal?");
});

describe("works for users who", () => {
  test("have no mouse: everything works with the keyboard", async () => {
    const challenge = await ask(stack);
    await tab.goto(challenge.challenge_url);
    await tab.shows("Sign in");
    // The user name is already filled in, so the first key goes into the password field.
    expect(await tab.focused()).toBe("Password");
    await tab.type("trial-password");
    await tab.press("Tab");
    expect(await tab.focused()).toBe("Sign in");
    await tab.press("Enter");
    await tab.shows("Sign in a terminal?");
    // An extra key press decides nothing.
    expect(await tab.focused()).toBe("");
    await tab.press("Enter");
    await tab.press("Tab");
    expect(await tab.focused()).toBe("Approve");
    expect(await tab.ask<string>("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
    await tab.press("Tab");
    expect(await tab.focused()).toBe("Deny");
    await tab.picture("approve-keyboard");
    await tab.press("Tab", "Shift");
    expect(await tab.focused()).toBe("Approve");
    expect(await status(challenge)).toBe("pending");
    await tab.press("Enter");
    await tab.shows("Approved");
    expect(await status(challenge)).toBe("success");
  });

  test("have scripts switched off: sign in as bob, then alice, approve", async () => {
    await tab.allowScripts(false);
    const challenge = await ask(stack);
    await tab.goto(challenge.challenge_url);
    expect(await tab.ask<string>("document.createElement('noscript').innerHTML")).toBe("");
    await signInAt(tab, { user: "bob@example.com" });
    await tab.shows("You are signed in as somebody else");
    await tab.click("main form button");
    await signInAt(tab, { user: "alice" });
    await tab.shows("Sign in a terminal?");
    await tab.click("button[value=approve]");
    await tab.shows("Approved");
    expect(await status(challenge)).toBe("success");
  });
});

test("the API page expands without scripts, for everyone", async () => {
  await tab.goto(`${stack.url}/openapi`);
  await tab.shows("API");
  await tab.click("#post_documents > summary");
  await tab.says("Idempotency-Key");
  expect(await tab.inspect("openapi")).toEqual([]);
  await tab.click('#post_documents a[href="#Problem"]');
  // A browser opens what a link leads into.
  expect(await tab.ask("document.querySelector('#Problem').checkVisibility()")).toBe(true);
});
