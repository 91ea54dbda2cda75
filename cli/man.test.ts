import { expect, test } from "bun:test";
import { runHere as svc } from "../tests/support/cli/io.ts";
import { isGroup } from "./command_tree.ts";
import { root } from "./tree.ts";

test("the manual page passes mandoc -T lint and has every command", async () => {
  const { code, stdout: page, stderr } = await svc(["help", "--man"]);
  expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  const mandoc = (...words: string[]) => {
    const done = Bun.spawnSync(["mandoc", ...words], { stdin: Buffer.from(page) });
    return [done.stdout, done.stderr].map(String).join("");
  };
  // The date is left out: a page that changes from day to day cannot be built twice.
  expect(mandoc("-T", "lint", "-W", "warning").replaceAll(/^.*missing date.*\n/gm, "")).toBe("");
  const shown = mandoc("-T", "utf8", "-O", "width=200").replaceAll(/.\u0008/g, "");
  const database = root.commands.database!;
  if (!isGroup(database)) throw new Error("database is a group");
  for (const name of Object.keys(database.commands)) expect(shown).toContain(`svc database ${name} `);
  expect(shown).toContain("--[no-]access-log");
  const aliases = shown.slice(shown.indexOf("\nALIASES\n"), shown.indexOf("\nENVIRONMENT\n"));
  expect(aliases.match(/svc .+/g)?.slice(0, 4)).toEqual([
    "svc incident declare",
    "svc incident report",
    "svc inc",
    "svc incident",
  ]);
  // Not typographic, so that examples can be pasted.
  for (const word of ["psql \\-c \\(aqselect current_user\\(aq", "\\(ti/.config/svc/credentials.json"])
    expect(page).toContain(word);
  for (const word of ["SVC_INCIDENT", "NO_COLOR", "~/.local/state/svc/drafts/"])
    expect(shown).toContain(word);
  expect(shown).toContain("svc server start server/main:app --uds /run/svc.sock");
  expect(shown).not.toContain("--supervised");
  expect(shown).not.toContain("svc plugins list");
});

test("help prints the same as --help, for svc, a group and a command", async () => {
  for (const path of [[], ["database"], ["database", "upgrade"]])
    expect(await svc(["help", ...path])).toEqual(await svc([...path, "--help"]));
});

test("help for an unknown command, and --man with a command, are invalid", async () => {
  const fault = async (...words: string[]) => {
    const { code, stderr } = await svc(["help", ...words]);
    return [code, stderr.split("\n")[0]];
  };
  expect(await fault("database", "upgrde")).toEqual([2, "svc: unknown command: database upgrde"]);
  expect(await fault("login", "--man")).toEqual([2, "svc: --man takes no command"]);
});
