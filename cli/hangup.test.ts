import { afterEach, beforeEach, expect, test } from "bun:test";
import { fakeToken } from "../tests/support/cli/fake_server.ts";
import { IncidentApi } from "../tests/support/cli/incident_api.ts";
import { configHome } from "../tests/support/cli/io.ts";
import { testProgram } from "../tests/support/cli/process.ts";
import { until, within } from "../tests/support/process/until.ts";

/** A terminal that goes away, as when its window is closed or a connection is lost. */

let server: IncidentApi;
beforeEach(() => {
  server = new IncidentApi();
  server.incident(7);
  server.happens(7, "Incident reported: Checkout is down", { kind: "incident.reported" });
  const kinds = Response.json({
    items: [
      { id: 1, name: "A" },
      { id: 2, name: "B" },
    ],
    next_cursor: null,
  });
  for (const path of ["/incident_types/", "/incident_priorities/"])
    server.answers.set(path, () => kinds.clone());
});
afterEach(() => server.stop());

const cases: [string, string[], RegExp, string][] = [
  ["a prompt for a text", ["report"], /What is wrong/, "xterm"],
  ["a prompt for a choice", ["report", "Broken"], /Which type/, "xterm"],
  ["a prompt on a dumb terminal", ["report"], /What is wrong/, "dumb"],
  ["the board", ["watch"], /Checkout is down/, "xterm"],
  ["watching one incident", ["watch", "7"], /INC-7 · /, "xterm"],
];

for (const signal of ["default", "ignored"] as const)
  test.each(cases)(`ends %s (SIGHUP ${signal})`, async (_what, words, shown, term) => {
    let text = "";
    const trap = signal === "ignored" ? "trap '' HUP; " : "";
    const data = (_: unknown, bytes: Uint8Array) => {
      text += Buffer.from(bytes);
    };
    const child = Bun.spawn(["sh", "-c", `${trap}exec "$@"`, "sh", ...testProgram, "incident", ...words], {
      env: {
        PATH: process.env.PATH,
        TERM: term,
        XDG_CONFIG_HOME: configHome(),
        XDG_STATE_HOME: configHome(),
        SVC_SERVER: server.url,
        SVC_TOKEN: fakeToken(),
      },
      terminal: { cols: 80, rows: 24, data },
    });
    try {
      await until(`${shown}`, () => shown.test(text));
      child.terminal!.close();
      await within("the end of the process", child.exited);
      expect(child.exitCode).not.toBe(0);
    } finally {
      child.kill("SIGKILL");
    }
  });
