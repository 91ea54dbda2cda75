import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { shells } from "../../cli/completion/scripts.ts";
import { CompletingShell } from "../support/process/shells.ts";

/** The typed text, including tabs, and the arguments with which `svc` is started. */
const lines: [typed: string, started: string[]][] = [
  ["svc databa\tupg\t--sq\t", ["database", "upgrade", "--sql"]],
  [
    "svc scheduler start calc\t--log-level d\t",
    ["scheduler", "start", "calculate-incident-cost", "--log-level", "debug"],
  ],
  ["svc scheduler start --log-level=d\t", ["scheduler", "start", "--log-level=debug"]],
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

const candidates = [
  "bob@example.com",
  "--to=alice@example.com",
  "Data Loss",
  "Data Corruption",
  "--type=Data Loss",
];
const named: [typed: string, started: string[]][] = [
  ["svc inc add bob@\t", ["inc", "add", "bob@example.com"]],
  ["svc inc list --commander bob@exa\t", ["inc", "list", "--commander", "bob@example.com"]],
  ["svc inc say --to=alice@e\t", ["inc", "say", "--to=alice@example.com"]],
  ["svc inc say --to=al\t", ["inc", "say", "--to=alice@example.com"]],
  ["svc inc list -t D\tL\t", ["inc", "list", "-t", "Data Loss"]],
  ["svc inc list --type=D\t", ["inc", "list", "--type=Data Loss"]],
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

  test("types addresses and names with spaces", async () => {
    using terminal = new CompletingShell(shell, candidates);
    for (const [typed, started] of named)
      expect([typed, await terminal.run(typed)]).toEqual([typed, started]);
  });
});

test("completion in bash closes a quotation mark", async () => {
  using terminal = new CompletingShell("bash", candidates);
  expect(await terminal.run('svc inc list -t "Data L\t')).toEqual(["inc", "list", "-t", "Data Loss"]);
});
