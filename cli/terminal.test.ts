import { afterEach, beforeEach, expect, test } from "bun:test";
import { join } from "node:path";
import { FakeServer } from "../tests/support/cli/fake_server.ts";
import { configHome } from "../tests/support/cli/io.ts";
import { svcOnTerminal } from "../tests/support/cli/process.ts";

/** `svc login` on a real pseudo-terminal. */

let server: FakeServer;
let env: Record<string, string>;

beforeEach(() => {
  server = new FakeServer();
  env = { XDG_CONFIG_HOME: configHome(), SVC_SERVER: server.url };
});
afterEach(() => server.stop());

const login = ["login", "alice", "--no-browser"];
const HIDE_CURSOR = "\x1b[?25l";
const SHOW_CURSOR = "\x1b[?25h";
const COLOUR = /\x1b\[[0-9;]*m/;
const SPINNER = /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏-].* Waiting for your approval in the browser, \d:\d\d left/;

/** The escape sequence that decides whether the cursor is visible in the end. */
function cursorAtTheEnd(output: string): string | undefined {
  return output.match(/\x1b\[\?25[hl]/g)?.at(-1);
}

/** What came after the last picture of the spinner: first of all its line is cleared. */
function afterSpinner(output: string): string {
  return output.slice(output.lastIndexOf(" left") + " left".length);
}
const CLEARED = /^(\x1b\[\?2026l)?\x1b\[1G\x1b\[0?K/;

test("shows a spinner with the remaining time until the approval", async () => {
  const terminal = svcOnTerminal(login, env);
  await terminal.shows(/WXYZ-2345/);
  await terminal.shows(SPINNER);
  await terminal.shows(/1:5\d left/);
  expect(terminal.output()).toContain(HIDE_CURSOR);
  expect(terminal.output()).toMatch(COLOUR);
  server.decide("success");
  expect(await terminal.exitCode()).toBe(0);
  await terminal.shows(/Signed in to/);
  expect(cursorAtTheEnd(terminal.output())).toBe(SHOW_CURSOR);
  expect(afterSpinner(terminal.output())).toMatch(CLEARED);
});

test("clears the spinner when the terminal becomes narrower", async () => {
  const terminal = svcOnTerminal(login, env);
  await terminal.shows(SPINNER);
  terminal.child.terminal!.resize(30, 24);
  // The picture of 55 columns has two rows now: the lower one is cleared, then the upper one.
  await terminal.shows(/\r\x1b\[0K\x1b\[1A\x1b\[1G\x1b\[0?K/);
  server.decide("success");
  expect(await terminal.exitCode()).toBe(0);
});

test("Ctrl-C exits immediately with 130, and restores the cursor", async () => {
  const terminal = svcOnTerminal(login, env);
  await terminal.shows(SPINNER);
  await server.polled;
  terminal.press("\x03");
  expect(await terminal.exitCode()).toBe(130);
  expect(cursorAtTheEnd(terminal.output())).toBe(SHOW_CURSOR);
  expect(afterSpinner(terminal.output()).replace("^C", "")).toMatch(CLEARED);
  expect(terminal.output()).not.toContain("svc: ");
});

test("Ctrl-Z gives the cursor to the shell, and fg goes on", async () => {
  const terminal = svcOnTerminal(login, env, { script: 'set -m; "$@"; echo stopped; read -r word; fg' });
  await terminal.shows(SPINNER);
  terminal.press("\x1a");
  await terminal.shows(/stopped/);
  expect(cursorAtTheEnd(terminal.output())).toBe(SHOW_CURSOR);
  terminal.press("\n");
  await terminal.shows(/stopped[\s\S]+Waiting for your approval/);
  server.decide("success");
  expect(await terminal.exitCode()).toBe(0);
});

test("NO_COLOR: the spinner without colour", async () => {
  const terminal = svcOnTerminal(login, { ...env, NO_COLOR: "1" });
  await terminal.shows(SPINNER);
  server.decide("success");
  expect(await terminal.exitCode()).toBe(0);
  expect(terminal.output()).not.toMatch(COLOUR);
});

test("reports a browser that fails without breaking the spinner", async () => {
  const terminal = svcOnTerminal(["login", "alice"], { ...env, BROWSER: "/nonexistent/browser" });
  await terminal.shows(/The browser did not open \(there is no \/nonexistent\/browser\)/);
  await terminal.shows(SPINNER);
  server.decide("denied");
  expect(await terminal.exitCode()).toBe(1);
  await terminal.shows(/svc: the sign-in was denied in the browser/);
  expect(cursorAtTheEnd(terminal.output())).toBe(SHOW_CURSOR);
});

test.each(["help", "--version"])("%s exits with 1 if the output cannot be written", (word) => {
  const { exitCode, stderr } = Bun.spawnSync(
    ["sh", "-c", 'exec "$0" cli/main.ts "$1" > /dev/full', process.execPath, word],
    { cwd: join(import.meta.dir, "..") },
  );
  expect([exitCode, stderr.toString()]).toEqual([1, "svc: cannot write the output (ENOSPC)\n"]);
});
