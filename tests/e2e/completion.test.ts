import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { shells } from "../../cli/completion/scripts.ts";
import { CompletingShell } from "../support/process/shells.ts";

/** The typed text, including tabs, and the arguments with which `svc` is started. */
const lines: [typed: string, started: string[]][] = [
  ["svc databa\tupg\t--sq\t", ["database", "upgrade", "--sql"]],
  [
    "svc scheduler start calc\t--log-level w\t",
    [...["scheduler", "start", "calculate-incident-cost", "--log-level", "warn"]],
  ],
  ["svc scheduler start --log-level=w\t", ["scheduler", "start", "--log-level=warn"]],
  ["svc server start a:b --ssl-keyfile my\t", ["server", "start", "a:b", "--ssl-keyfile", "my key.pem"]],
  ["svc up --data-dir fold\tx", ["up", "--data-dir", "folder/x"]],
  // A file's name is neither completed as a command nor run.
  ["svc file-\t", ["file-"]],
  ["svc 'no such' lo\t", ["no such", "lo"]],
  [
    "svc server start a:b --ssl-certfile '$(touch\t'",
    ["server", "start", "a:b", "--ssl-certfile", "$(touch"],
  ],
];

describe.each(shells)("completion in %s", (shell) => {
  test("types what was meant", async () => {
    using terminal = new CompletingShell(shell);
    writeFileSync(join(terminal.folder, "my key.pem"), "");
    writeFileSync(join(terminal.folder, "file-1"), "");
    mkdirSync(join(terminal.folder, "folder"));
    for (const [typed, started] of lines)
      expect([typed, await terminal.run(typed)]).toEqual([typed, started]);
    expect(existsSync(join(terminal.folder, "touch"))).toBe(false);
  });
});
