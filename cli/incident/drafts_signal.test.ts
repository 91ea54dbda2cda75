import { afterEach, beforeEach, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { drafts } from "../../tests/support/cli/drafts.ts";
import { fakeToken } from "../../tests/support/cli/fake_server.ts";
import { IncidentApi } from "../../tests/support/cli/incident_api.ts";
import { configHome } from "../../tests/support/cli/io.ts";
import { testProgram } from "../../tests/support/cli/process.ts";
import { within } from "../../tests/support/process/until.ts";

// A signal that ends the process while the server has not answered.

let server: IncidentApi;
beforeEach(() => {
  server = new IncidentApi();
  server.incident(7);
  const one = Response.json({ items: [{ id: 1, name: "High" }], next_cursor: null });
  for (const path of ["/incident_types/", "/incident_priorities/"])
    server.answers.set(path, () => one.clone());
});
afterEach(() => server.stop());

const again = "To send it: svc incident";
const note = `Your text is kept. ${again} note -i INC-7 -F PATH`;

test.each([
  ["SIGTERM", ["note", "INC-7", "-"], "/incidents/7/events", note],
  ["SIGHUP", ["note", "INC-7", "-"], "/incidents/7/events", note],
  // Before the text is used.
  ["SIGTERM", ["note", "INC-7", "-"], "/incidents/INC-7", note],
  ["SIGHUP", ["note", "INC-7", "A text"], "/incidents/7/events", note],
  [
    "SIGTERM",
    ["report", "Down", "-F", "-"],
    "/incidents/",
    `The report is kept. ${again} report --recover PATH`,
  ],
  [
    "SIGTERM",
    ["task", "add", "-i", "7", "A text"],
    "/tasks/",
    "To try again, repeat the command: nothing is added twice.",
  ],
] as const)("%s: the text of %j is kept while %s hangs", async (signal, words, path, message) => {
  const { promise: asked, resolve } = Promise.withResolvers<void>();
  server.answers.set(path, () => {
    resolve();
    return new Promise(() => {});
  });
  const home = configHome();
  await using child = Bun.spawn([...testProgram, "incident", ...words], {
    env: {
      PATH: process.env.PATH,
      XDG_CONFIG_HOME: home,
      XDG_STATE_HOME: home,
      SVC_SERVER: server.url,
      SVC_TOKEN: fakeToken(),
    },
    stdin: Buffer.from("A text\n"),
    stderr: "pipe",
  });
  await within("the request", asked);
  child.kill(signal);
  const stderr = await within("the end of the process", new Response(child.stderr).text());
  const [kept = ""] = drafts(home);
  expect(stderr).toBe(`${message.replace("PATH", kept)}\n`);
  expect(readFileSync(kept, "utf8")).toContain("A text");
  await child.exited;
  expect(child.signalCode).toBe(signal);
});
