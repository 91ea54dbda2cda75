import { afterEach, beforeEach, expect, test } from "bun:test";
import { fakeToken } from "../tests/support/cli/fake_server.ts";
import { IncidentApi } from "../tests/support/cli/incident_api.ts";
import { configHome } from "../tests/support/cli/io.ts";
import { svcOnTerminal } from "../tests/support/cli/process.ts";
import { within } from "../tests/support/process/until.ts";

let server: IncidentApi;
beforeEach(() => {
  server = new IncidentApi();
  const kinds = {
    items: [
      { id: 1, name: "First" },
      { id: 2, name: "Second" },
    ],
    next_cursor: null,
  };
  for (const path of ["/incident_types/", "/incident_priorities/"])
    server.answers.set(path, () => Response.json(kinds));
});
afterEach(() => server.stop());

function report(words = ["Broken"], more: Record<string, string> = {}, options?: { script?: string }) {
  const env = { XDG_CONFIG_HOME: configHome(), XDG_STATE_HOME: configHome() };
  const session = { SVC_SERVER: server.url, SVC_TOKEN: fakeToken() };
  return svcOnTerminal(["incident", "report", ...words], { ...env, ...session, ...more }, options);
}

test.each([
  ["a dumb terminal", "dumb", undefined],
  ["a terminal without a width", "xterm", 'stty cols 0; exec "$@"'],
])("%s gets lines and numbers to choose from", async (_what, term, script) => {
  const terminal = report([], { TERM: term }, { script });
  await within("the question", terminal.shows(/What is wrong\? /));
  terminal.press("Broken\r");
  await within("the choices", terminal.shows(/Which type\?\r\n1\. First\r\n2\. Second\r\n[\s\S]*Number: /));
  terminal.press("3\r");
  await within("another try", terminal.shows(/1 to 2\r\n[\s\S]*Number: /));
  terminal.press("2\r");
  await within("the next question", terminal.shows(/Which priority\?/));
  if (term === "dumb") expect(terminal.output()).not.toContain("\x1b");
  await within("the numbers", terminal.shows(/Which priority\?[\s\S]*Number: /));
  terminal.press("\x03");
  expect(await within("the end", terminal.exitCode())).toBe(130);
});

test("lines that were pasted before a question do not answer it", async () => {
  const terminal = report();
  terminal.press("svc incident list\nj\n");
  await within("the question", terminal.shows(/before this question is ignored[\s\S]*Which type/));
  terminal.press("\x1b[B\r");
  await within("the next question", terminal.shows(/Which priority/));
  expect(terminal.output()).toMatch(/Second[\s\S]*Which priority/);
  terminal.press("\x03");
  expect(await terminal.exitCode()).toBe(130);
  expect(terminal.output()).toContain("The report is kept.");
});

test("Ctrl-C before a question ends the command", async () => {
  const terminal = report();
  terminal.press("\x03");
  // Either as a signal, or read by the question.
  expect(await within("the end", terminal.exitCode())).not.toBe(0);
});

test.each([
  ["to type", [], "B", /icanon[\s\S]*│\s+B/],
  ["to choose", ["Broken"], "\x1b[B", /icanon[\s\S]*●\s+Second/],
])("Ctrl-Z at a question suspends the whole job, and fg goes on: %s", async (_what, words, keys, shown) => {
  // A wrapper in the same job, like npx.
  const script = `set -m; sh -c '"$@"; exit $?' sh "$@"; stty -a; read -r word; fg; echo "exit $?"`;
  const terminal = report(words, { NO_COLOR: "1" }, { script });
  const shows = (pattern: RegExp) => within(`${pattern}`, terminal.shows(pattern));
  await shows(/◆/);
  terminal.press("\x1a");
  await shows(/ icanon /);
  terminal.press(`\n${keys}`);
  await shows(shown);
  terminal.press("\x03");
  await shows(/exit 130/);
});
