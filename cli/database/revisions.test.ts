import { expect, test } from "bun:test";
import { fakeTerminal } from "../../tests/support/cli/io.ts";
import { follow } from "./revisions.ts";

const upgrade = async (env: Record<string, string>) => {
  const [stdout, stderr] = [fakeTerminal(), fakeTerminal()];
  await follow({ stdout, stderr, env }, "Applying", "Applied", async ({ begin, log }) => {
    begin("20260101T0000_first");
    log("20260101T0000_first");
  });
  return { stdout: stdout.shown.join(""), stderr: stderr.shown.join("") };
};

test("the running revision is shown on a terminal, until it is done", async () => {
  expect(await upgrade({ TERM: "xterm" })).toEqual({
    stdout: "Applied 20260101T0000_first\n",
    stderr: "\r\x1b[KApplying 20260101T0000_first\r\x1b[K\r\x1b[K",
  });
});

test("a dumb terminal gets no control sequences", async () => {
  expect(await upgrade({ TERM: "dumb" })).toEqual({ stdout: "Applied 20260101T0000_first\n", stderr: "" });
});
