import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { closeChromium, Tab } from "../support/browser/chromium.ts";
import { signInAt } from "../support/browser/sign_in.ts";
import type { Program } from "../support/process/program.ts";
import { Stack } from "../support/process/stack.ts";
import { until, within } from "../support/process/until.ts";

/** The output of `svc login` on a real pseudo-terminal, against a real server. */

setDefaultTimeout(60_000);

let stack: Stack;
let tab: Tab;
beforeAll(async () => {
  stack = await Stack.start();
  tab = await Tab.open();
});
afterAll(async () => {
  tab?.close();
  await stack?.[Symbol.asyncDispose]();
  await closeChromium();
});

const SPINNER = /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏].* Waiting for your approval in the browser, \d:\d\d left/;
const WAITING = /Waiting for your approval in the browser, \d:\d\d left/;
const COLOUR = /\x1b\[[0-9;]*m/;
const HIDDEN = "\x1b[?25l";
const VISIBLE = "\x1b[?25h";
const cursor = ({ screen }: Program) => screen.match(/\x1b\[\?25[hl]/g)?.at(-1);
const svc = (args: string[], env?: Record<string, string>, columns?: number) =>
  stack.svc(["login", "alice@example.com", ...args], env, columns);

/** Opens the address that the terminal shows, in a browser that may already be signed in, and decides. */
async function decide(login: Program, decision: "approve" | "deny"): Promise<void> {
  const [, url] = await login.says(/(http\S+\/challenge_validator\/[\w-]+)/);
  await tab.goto(url!);
  if ((await tab.address()).startsWith(stack.issuer)) await signInAt(tab);
  await tab.shows("Sign in a terminal?");
  await tab.click(`button[value=${decision}]`);
}

/** Resolves when the server has received the poll of this terminal. */
async function polling(before: number): Promise<void> {
  await until("a poll", () => stack.polls().length > before);
}

test("shows a spinner that counts down, and restores the cursor", async () => {
  await using login = svc(["--no-browser", "--force"], {}, 80);
  await login.says(SPINNER);
  expect(login.screen).toContain(HIDDEN);
  expect(login.screen).toMatch(COLOUR);
  await login.says(/ 1:(?!59)\d\d left/);
  await decide(login, "approve");
  expect(await login.exit()).toBe(0);
  expect(login.screen).toContain("Signed in to");
  expect(cursor(login)).toBe(VISIBLE);
});

test("Ctrl-C exits with 130 during a held poll, and restores the cursor", async () => {
  const before = stack.polls().length;
  await using login = svc(["--no-browser", "--force"], {}, 80);
  await login.says(SPINNER);
  await polling(before);
  login.press("\x03");
  expect(await within("it to end", login.exit(), 10)).toBe(130);
  expect(cursor(login)).toBe(VISIBLE);
  expect(login.screen).not.toContain("svc: ");
});

test("Deny in the browser exits with 1 and one line", async () => {
  await using login = svc(["--no-browser", "--force"], {}, 80);
  await login.says(SPINNER);
  await decide(login, "deny");
  expect(await login.exit()).toBe(1);
  expect(login.screen).toContain("svc: the sign-in was denied in the browser");
  expect(cursor(login)).toBe(VISIBLE);
});

test("a terminal without a width gets one plain line", async () => {
  await using login = svc(["--no-browser", "--force"], {}, 0);
  await login.says(WAITING);
  await decide(login, "approve");
  expect(await login.exit()).toBe(0);
  expect(login.screen).toContain("Signed in to");
  expect(login.screen).not.toContain(HIDDEN);
  expect(login.screen.length).toBeLessThan(1000);
});

test("NO_COLOR disables the colour of the spinner", async () => {
  await using login = svc(["--no-browser", "--force"], { NO_COLOR: "1" }, 80);
  await login.says(SPINNER);
  await decide(login, "deny");
  expect(await login.exit()).toBe(1);
  expect(login.screen).not.toMatch(COLOUR);
});

test("without a terminal, there are no escape sequences; messages go to stderr", async () => {
  await using login = svc(["--no-browser", "--force"]);
  await login.says(WAITING);
  await decide(login, "approve");
  expect(await login.exit()).toBe(0);
  expect(login.stdout).toStartWith(`Signed in to ${stack.url} as alice@example.com until `);
  expect(login.stdout.split("\n")).toHaveLength(2);
  expect(login.output).not.toContain("\x1b");
  expect(login.stderr.match(new RegExp(WAITING, "g"))).toHaveLength(1);
});

test("over SSH, only --browser opens a browser", async () => {
  const opener = stack.opener();
  const ssh = { ...opener.env, SSH_CONNECTION: "192.0.2.1 50000 192.0.2.2 22", DISPLAY: ":0" };
  let before = stack.polls().length;
  await using login = svc(["--force"], ssh, 80);
  await login.says(/Not opening a browser over SSH/);
  await polling(before);
  login.press("\x03");
  expect(await login.exit()).toBe(130);
  expect(existsSync(`${opener.path}.opened`)).toBe(false);

  before = stack.polls().length;
  await using asked = svc(["--force", "--browser"], ssh, 80);
  expect(asked.screen).not.toContain("Not opening");
  expect(await opener.opened()).toStartWith(`${stack.url}/challenge_validator/`);
  asked.press("\x03");
  expect(await asked.exit()).toBe(130);
  opener.close();
});

test("without a display, it says why no browser opens", async () => {
  await using login = svc(["--force"], {}, 80);
  await login.says(/Not opening a browser: there is no display/);
  await login.says(SPINNER);
  login.press("\x03");
  expect(await login.exit()).toBe(130);
});

test("a failing or missing opener is reported, and the sign-in continues", async () => {
  for (const [browser, reason] of [
    ["/bin/false", "exit code 1"],
    ["/nonexistent/browser", "there is no /nonexistent/browser"],
  ] as const) {
    await using login = svc(["--force"], { BROWSER: browser }, 200);
    await login.says(new RegExp(`The browser did not open \\(${reason}\\). Open the address above yourself`));
    await login.says(SPINNER);
    await decide(login, "approve");
    expect(await login.exit()).toBe(0);
  }
});
