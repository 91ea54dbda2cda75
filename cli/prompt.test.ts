import { afterEach, beforeEach, expect, test } from "bun:test";
import { within } from "../tests/support/process/until.ts";
import { fakeToken } from "./testing/fake_server.ts";
import { IncidentApi } from "./testing/incident_api.ts";
import { configHome } from "./testing/io.ts";
import { svcOnTerminal } from "./testing/process.ts";

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

function report() {
  const env = { XDG_CONFIG_HOME: configHome(), XDG_STATE_HOME: configHome() };
  return svcOnTerminal(["incident", "report", "Broken"], {
    ...{ ...env, SVC_SERVER: server.url, SVC_TOKEN: fakeToken() },
  });
}

test("lines that were pasted before a question do not answer it", async () => {
  const terminal = report();
  terminal.press("svc incident list\nj\n");
  await within("the question", terminal.shows(/before this question is ignored[\s\S]*Which type/), 10);
  terminal.press("\x1b[B\r");
  await within("the next question", terminal.shows(/Which priority/), 10);
  expect(terminal.output()).toMatch(/Second[\s\S]*Which priority/);
  terminal.press("\x03");
  expect(await terminal.exitCode()).toBe(130);
  expect(terminal.output()).toContain("The report is kept.");
});

test("Ctrl-C before a question ends the command", async () => {
  const terminal = report();
  terminal.press("\x03");
  // Either as a signal, or read by the question.
  expect(await within("the end", terminal.exitCode(), 10)).not.toBe(0);
});
