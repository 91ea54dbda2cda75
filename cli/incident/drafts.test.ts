import { beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drafts, editor, gone } from "../../tests/support/cli/drafts.ts";
import { type CliUser, cliUser, fetchAt } from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import { systemIo } from "../io.ts";

let { server, member, reported, notesOf } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, member, reported, notesOf } = given);
});

let carol: CliUser;
beforeAll(async () => {
  carol = await cliUser(server, "carol@example.com");
});

const stateOf = async (id: number) => (await member.call("GET", `/incidents/${id}`)).body;
/** A user without drafts. */
const somebody = async () => carol.elsewhere();

/** The words of the command that sends a kept text again. */
const againOf = (stderr: string) => (/To send it: svc (.*)\n/.exec(stderr)?.[1] ?? "").split(" ");

describe("the editor", () => {
  test("gets a comment that is not sent, and leaves no draft", async () => {
    const { id, name } = await reported("Title --> end");
    const person = await somebody();
    const { code } = await person
      .with(
        editor((text) => {
          expect(text).toBe(
            `<!-- svc: Your note on ${name}: Title -- > end\nThis comment is not sent.\n-->\n\n`,
          );
          return `${text}Written <!-- here -->\n`;
        }),
      )
      .svc("inc", "note", "-i", name, "-e");
    expect([code, await notesOf(id), drafts(person.home)]).toEqual([0, ["Written <!-- here -->"], []]);
  });

  test("without a text sends nothing", async () => {
    const person = await somebody();
    const ran = await person.with(editor((text) => text)).svc("inc", "note", "-i", "INC-1", "-e");
    expect(ran).toEqual({ code: 1, stdout: "", stderr: "svc: the note is empty: nothing was sent\n" });
    expect(drafts(person.home)).toEqual([]);
  });

  test.each([
    [{ code: 1 }, "failed (exit code 1)"],
    [{ signal: "SIGKILL" }, "was killed (SIGKILL)"],
    // As the shell that runs it says.
    [{ code: 137 }, "was killed (SIGKILL)"],
  ])("that ends with %p: the text is kept, and nothing is sent", async (exit, how) => {
    const { id, name } = await reported();
    const person = await somebody();
    person.env.EDITOR = "ed --wait";
    const ran = await person.with(editor((text) => `${text}Kept`, exit)).svc("inc", "note", "-i", name, "-e");
    const [path = ""] = drafts(person.home);
    expect(ran).toEqual({
      code: 1,
      stdout: "",
      stderr: `Your text is kept. To send it: svc incident note -i ${name} -F ${path}\nsvc: ed --wait ${how}; nothing was sent\n`,
    });
    expect(readFileSync(path, "utf8")).toEndWith("Kept");
    expect(await notesOf(id)).toEqual([]);
    expect((await person.svc("inc", "note", "-i", name, "-F", path)).code).toBe(0);
    expect([await notesOf(id), drafts(person.home)]).toEqual([["Kept"], []]);
  });

  test("that fails without a change leaves no draft", async () => {
    const person = await somebody();
    await person.with(editor((text) => text, { code: 1 })).svc("inc", "note", "-i", "INC-1", "-e");
    expect(drafts(person.home)).toEqual([]);
  });

  test("is VISUAL, else EDITOR, else vi; EDITOR on a dumb terminal", async () => {
    const person = await somebody();
    const used: string[] = [];
    const edit = person.with({
      runOnTerminal: async (commandLine) => {
        used.push(commandLine);
        return { failed: "ENOENT" };
      },
    });
    await edit.svc("inc", "note", "-e", "-i", "INC-1");
    person.env.EDITOR = "ed";
    await edit.svc("inc", "note", "-e", "-i", "INC-1");
    person.env.VISUAL = "code --wait";
    await edit.svc("inc", "note", "-e", "-i", "INC-1");
    person.env.TERM = "dumb";
    await edit.svc("inc", "note", "-e", "-i", "INC-1");
    expect(used).toEqual(["vi", "ed", "code --wait", "ed"]);
  });

  test("is run by the shell, with the path as one word", async () => {
    const { id, name } = await reported();
    const person = await somebody();
    const script = join(person.home, "my editor");
    writeFileSync(script, '#!/bin/sh\n[ "$1" = --flag ] && echo "From $# words" >> "$2"\n');
    chmodSync(script, 0o755);
    person.env.EDITOR = `'${script}' --flag`;
    const { runOnTerminal } = systemIo();
    expect((await person.with({ runOnTerminal }).svc("inc", "note", "-i", name, "-e")).code).toBe(0);
    expect(await notesOf(id)).toEqual(["From 2 words"]);
    expect(await runOnTerminal("kill -9 $$; true", [])).toEqual({ signal: "SIGKILL" });
  });
});

describe("a text that cannot be sent", () => {
  test("is kept, and sent again only once", async () => {
    const { id, name } = await reported();
    const person = await somebody();
    const losing = person.with({
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        if (init.method !== "POST") return response;
        throw Object.assign(new Error("lost"), { code: "ECONNRESET" });
      },
    });
    const ran = await losing.svc("inc", "note", "-i", name, "Once");
    const [path = ""] = drafts(person.home);
    expect(ran.stderr).toBe(
      `Your text is kept. To send it: svc incident note -i ${name} -F ${path}\nsvc: cannot reach ${server.url} (ECONNRESET)\n`,
    );
    for (const _ of [1, 2]) {
      writeFileSync(path, "Once\n");
      expect((await person.svc("inc", "note", "-i", name, "-F", path)).code).toBe(0);
    }
    expect([await notesOf(id), drafts(person.home)]).toEqual([["Once"], []]);
  });

  test.each(["say", "update"])("of %s is kept when the server is gone", async (command) => {
    // Only this one has a channel.
    const name = "INC-1";
    const person = await somebody();
    const edit = editor((text) => text.replace("# Conditions\n", "# Conditions\nKept"), { code: 0 });
    const args = command === "update" ? [name, "-e"] : ["-i", name, "Kept"];
    const ran = await person.with({ ...gone, ...edit }).svc("inc", command, ...args);
    const [path = ""] = drafts(person.home);
    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining(`-F ${path}\nsvc: cannot reach`) });
    expect(readFileSync(path, "utf8")).toContain("Kept");
    const [, again = ""] = /To send it: svc (.*)\n/.exec(ran.stderr) ?? [];
    expect(await person.svc(...again.split(" "))).toMatchObject({ code: 0 });
    expect(drafts(person.home)).toEqual([]);
  });
});

describe("a text whose home directory cannot be written", () => {
  /** A directory that cannot be made: its parent is a file. */
  const unwritable = (home: string) => {
    writeFileSync(join(home, "file"), "");
    return join(home, "file/state");
  };

  test("is kept in a temporary directory, also for the editor, and sent again only once", async () => {
    const { id, name } = await reported();
    const person = await somebody();
    person.env.XDG_STATE_HOME = unwritable(person.home);
    person.env.TMPDIR = join(person.home, "tmp dir");
    mkdirSync(person.env.TMPDIR);
    const edit = editor((text) => `${text}Kept`);
    const ran = await person.with({ ...gone, ...edit }).svc("inc", "note", "-i", name, "-e");
    const [directory = ""] = readdirSync(person.env.TMPDIR);
    const [file = ""] = readdirSync(join(person.env.TMPDIR, directory));
    const path = join(person.env.TMPDIR, directory, file);
    expect(ran).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`-F '${path}'\nsvc: cannot reach`),
    });
    expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700);
    expect((await person.svc("inc", "note", "-i", name, "-F", path)).code).toBe(0);
    expect([await notesOf(id), readdirSync(person.env.TMPDIR)]).toEqual([["Kept"], []]);
  });

  test("is printed if there is no other place either", async () => {
    const { name } = await reported();
    const person = await somebody();
    person.env.TMPDIR = person.env.XDG_STATE_HOME = unwritable(person.home);
    const stdin = { readStdin: async () => Buffer.from("First\n\x1b[2Jsecond\n") };
    const noted = await person.with({ ...gone, ...stdin }).svc("inc", "note", "-i", name, "-");
    expect(noted.stderr).toMatch(
      /^Your text could not be kept: cannot write .* \(ENOTDIR\)\. This is it:\nFirst\n\ufffd\[2Jsecond\nsvc: cannot reach/,
    );
    const report = await person.with({ ...gone, ...stdin }).svc("inc", "report", "Broken", "-F", "-");
    expect(report.stderr).toMatch(
      /^The report could not be kept: .*\nFirst\n\ufffd\[2Jsecond\nsvc: cannot reach/,
    );
    const edited = await person.svc("inc", "note", "-i", name, "-e");
    expect(edited).toMatchObject({ code: 1, stderr: expect.stringMatching(/^svc: cannot write .*ENOTDIR/) });
  });
});

describe("stdin", () => {
  test.each([
    [["note", "-i", "INC-999", "-"], "note -i INC-999"],
    [["close", "-F", "-"], "close"],
    [["doc", "edit", "Log", "-i", "INC-1", "-F", "-"], "doc edit Log -i INC-1"],
  ])("is kept if nothing else of the command can be read: %p", async (words, again) => {
    const person = await somebody();
    const fetch = async () => {
      throw Object.assign(new Error("gone"), { code: "ECONNREFUSED" });
    };
    const ran = await person
      .with({ fetch, readStdin: async () => Buffer.from("Text\n") })
      .svc("inc", ...words);
    const [path = ""] = drafts(person.home);
    expect(ran).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`To send it: svc incident ${again} -F ${path}\nsvc: cannot`),
    });
    expect(readFileSync(path, "utf8")).toBe("Text\n");
  });

  test("for a description is the same when it is sent again", async () => {
    const { id, name } = await reported();
    const person = await somebody();
    const piped = { ...gone, readStdin: async () => Buffer.from("Piped\n") };
    const ran = await person.with(piped).svc("inc", "edit", name, "--title", "New", "-F", "-");
    expect((await person.svc(...againOf(ran.stderr))).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({ title: "New", description: "Piped" });
    await carol.svc("inc", "edit", name, "-d", "Other");
    const lost = await person.with(gone).svc("inc", "edit", name, "-d", "Typed, and *kept*");
    expect((await person.svc(...againOf(lost.stderr))).code).toBe(0);
    expect((await stateOf(id)).description).toBe("Typed, and *kept*");
    expect(drafts(person.home)).toEqual([]);
  });

  test("of nothing, or of binary data, leaves no draft", async () => {
    const person = await somebody();
    for (const text of [" \n", "a\0b"])
      await person
        .with({ readStdin: async () => Buffer.from(text) })
        .svc("inc", "note", "-i", "INC-999", "-");
    expect(drafts(person.home)).toEqual([]);
  });
});

test.each([
  [["-F", "-"], (name: string) => ["edit", name, "-d", "Theirs"], "description"],
  [["--resolution", "-"], (name: string) => ["close", name, "-r", "Theirs"], "resolution"],
] as const)(
  "a text that was kept before its server answered does not replace one that nobody saw: %p",
  async (option, change, field) => {
    const { id, name } = await reported();
    const person = await somebody();
    const fetch = async () => {
      throw Object.assign(new Error("gone"), { code: "ECONNREFUSED" });
    };
    const kept = await person
      .with({ fetch, readStdin: async () => Buffer.from("Mine\n") })
      .svc("inc", "edit", name, ...option);
    await carol.svc("inc", ...change(name));
    const refused = await person.svc(...againOf(kept.stderr));
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(" may have changed since your text was kept; nothing was saved.\n"),
    });
    expect((await stateOf(id))[field]).toBe("Theirs");
    const [path = ""] = drafts(person.home);
    const both = readFileSync(path, "utf8");
    expect(both).toContain("<<<<<<< yours\nMine\n=======\nTheirs\n>>>>>>> theirs\n");
    writeFileSync(path, both.replace(/<<<<<<< yours[\s\S]*theirs/, "Both"));
    expect((await person.svc(...againOf(refused.stderr))).code).toBe(0);
    expect((await stateOf(id))[field]).toBe("Both");
  },
);

const bothVersions =
  'Your text now has both versions where both of you changed it, between "<<<<<<< yours" and ">>>>>>> theirs": edit it first.';

test("a resolution that is sent again after somebody else has closed the incident shows both versions", async () => {
  const { id, name } = await reported();
  const person = await somebody();
  const lost = await person.with(gone).svc("inc", "close", name, "-r", "Mine");
  await carol.svc("inc", "close", name, "-r", "Theirs");
  const refused = await person.svc(...againOf(lost.stderr));
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("Theirs: Theirs\n") });
  // The same command overwrites nothing, until somebody has chosen.
  const [path = ""] = drafts(person.home);
  const both = "<<<<<<< yours\nMine\n=======\nTheirs\n>>>>>>> theirs\n";
  expect(readFileSync(path, "utf8")).toBe(both);
  expect(await person.svc(...againOf(refused.stderr))).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("line 1 of your text is still the marker of a conflict"),
  });
  expect((await stateOf(id)).resolution).toBe("Theirs");
  writeFileSync(path, "Theirs and mine");
  expect((await person.svc(...againOf(refused.stderr))).code).toBe(0);
  expect((await stateOf(id)).resolution).toBe("Theirs and mine");
  expect(drafts(person.home)).toEqual([]);
});

test("an edit that is sent again keeps what others have changed since, and shows both versions of the same field", async () => {
  const { id, name } = await reported("Old");
  const person = await somebody();
  await carol.svc("inc", "edit", name, "-d", "First");
  const edit = editor((text) => text.replace("First", "Mine"));
  const lost = await person.with({ ...gone, ...edit }).svc("inc", "edit", name, "-e");
  await carol.svc("inc", "edit", name, "--title", "Theirs");
  expect((await person.svc(...againOf(lost.stderr))).code).toBe(0);
  expect(await stateOf(id)).toMatchObject({ title: "Theirs", description: "Mine" });

  const more = editor((text) => text.replace("Mine", "Again mine"));
  const lostAgain = await person.with({ ...gone, ...more }).svc("inc", "edit", name, "-e");
  await carol.svc("inc", "edit", name, "-d", "Also theirs", "--title", "New");
  const refused = await person.svc(...againOf(lostAgain.stderr));
  const [path = ""] = drafts(person.home);
  expect(refused).toEqual({
    code: 1,
    stdout: "",
    stderr: `Theirs (-) and yours (+):
@@ line 8
 # Description
 
-Also theirs
+Again mine
svc: ${name} has been changed by somebody else in the meantime; nothing was saved.
${bothVersions}
Your text is kept. To send it: svc incident edit ${name} -F ${path}
`,
  });
  const kept = readFileSync(path, "utf8");
  expect(kept).toContain("<<<<<<< yours\nAgain mine\n=======\nAlso theirs\n>>>>>>> theirs\n");
  writeFileSync(path, kept.replace(/<<<<<<< yours[\s\S]*theirs/, "Both"));
  expect((await person.svc(...againOf(refused.stderr))).code).toBe(0);
  expect(await stateOf(id)).toMatchObject({ title: "New", description: "Both" });
  expect(drafts(person.home)).toEqual([]);
});

test("svc incident drafts lists the kept texts with the commands that send them", async () => {
  const { name } = await reported();
  const person = await somebody();
  const none = await person.svc("inc", "drafts");
  expect(none).toEqual({ code: 0, stdout: "", stderr: "No kept texts found.\n" });
  const lost = await person.with(gone).svc("inc", "note", "-i", name, "A note\nof two lines");
  const [note = ""] = drafts(person.home);
  await person.with(gone).svc("inc", "report", "Down", "-p", "Urgent");
  await person.with(gone).svc("inc", "task", "add", "-i", name, "Do it");
  writeFileSync(join(note, "../other.md"), "Not ours");
  const { items } = JSON.parse((await person.svc("inc", "drafts", "--json")).stdout);
  const command = `svc incident note -i ${name} -F ${note}`;
  expect(lost.stderr).toContain(`To send it: ${command}\n`);
  expect(items).toMatchObject([
    { kind: "note", text: "A note\nof two lines\n", file: note, command },
    {
      kind: "report",
      text: "Down\n",
      command: expect.stringMatching(/^svc incident report --recover .*json$/),
    },
    { kind: "task", text: "Do it", command: null },
  ]);
  const listed = (await person.svc("inc", "drafts")).stdout.replaceAll(/^\S+Z {2}/gm, "");
  expect(listed).toBe(
    `note: A note\n  ${command}\nreport: Down\n  ${items[1].command}\ntask: Do it\n  Repeat its command within a day\n`,
  );
  expect((await person.svc(...command.split(" ").slice(1))).code).toBe(0);
  expect((await person.svc("inc", "drafts")).stdout).not.toContain("note: ");
  expect(readdirSync(join(person.home, "svc/draft-commands"))).toEqual([]);
});

describe("an editor that fails", () => {
  test.each([
    [["task", "add", "-i", "INC-1", "-e"], "task add -i INC-1"],
    [["update", "INC-1", "-e"], "update INC-1"],
    [["report", "Down", "-e", "-p", "Urgent", "--use"], "report Down --priority Urgent --use"],
  ])("prints the command that sends its text: %p", async (words, again) => {
    const person = await somebody();
    const failing = person.with(editor((text) => `${text}Kept`, { code: 3 }));
    const { code, stderr } = await failing.svc("inc", ...words);
    const [path = ""] = drafts(person.home);
    expect([code, stderr]).toEqual([
      1,
      `Your text is kept. To send it: svc incident ${again} -F ${path}\nsvc: vi failed (exit code 3); nothing was sent\n`,
    ]);
    expect((await person.svc("inc", "drafts")).stdout).toContain(`  svc incident ${again} -F ${path}\n`);
  });
});

describe("the command that sends a text again", () => {
  test.each([
    [["say", "INC-1", "Hello", "--to", "alice"], "say -i INC-1 --to alice"],
    [["note", "INC-1", "Hello", "--at", "2026-01-01T00:00Z"], "note -i INC-1 --at 2026-01-01T00:00:00.000Z"],
    [
      ["doc", "new", "INC-1", "It's", "new", "--link", "https://a.example/?b&c", "-F", "-"],
      "doc new -i INC-1 'It'\\''s new' --type reference --link 'https://a.example/?b&c'",
    ],
    [
      ["edit", "INC-1", "-p", "Urgent", "--restricted", "-F", "-"],
      "edit INC-1 --priority Urgent --restricted",
    ],
    [["edit", "INC-1", "--title", "It's new", "-d", "Text"], "edit INC-1 --title 'It'\\''s new'"],
    [["edit", "INC-1", "-r", "Done"], "edit INC-1"],
    [["close", "INC-1", "-r", "Done"], "close INC-1"],
    [["update", "INC-1", "-c", "Bad"], "update INC-1"],
  ])("has the options and the server of the first: %p", async (words, line) => {
    const person = await somebody();
    const losing = person.with({ ...gone, readStdin: async () => Buffer.from("Text") });
    const { stderr } = await losing.svc("inc", ...words, "--server", server.url);
    const [path] = drafts(person.home);
    expect(stderr).toStartWith(
      `Your text is kept. To send it: svc incident ${line} --server ${server.url} -F ${path}\n`,
    );
  });
});

test("a resolution of edit is sent again as one, also beside a description", async () => {
  const { id, name } = await reported();
  const person = await somebody();
  const { stderr } = await person.with(gone).svc("inc", "edit", name, "-r", "It's done", "-d", "New");
  const commands = [...stderr.matchAll(/To send it: svc (.*)\n/g)].map(([, again = ""]) => again.split(" "));
  expect(commands).toHaveLength(2);
  for (const again of commands) expect((await person.svc(...again)).code).toBe(0);
  expect(await stateOf(id)).toMatchObject({ resolution: "It's done", description: "New" });
  expect(drafts(person.home)).toEqual([]);
});

describe("a text from the editor that is too long", () => {
  test.each([
    ["note", ["note", "INC-1", "-e"]],
    ["report", ["report", "Long", "-e"]],
    ["document", ["doc", "new", "INC-1", "Long", "-e"]],
  ])("is kept: %s", async (_, words) => {
    const person = await somebody();
    const long = `Long ${"x".repeat(1_048_576)}`;
    const { code, stderr } = await person.with(editor(() => long)).svc("inc", ...words);
    const [path = ""] = drafts(person.home);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^Your text is kept\. To send it: (.*)\nsvc: the \w+ is too long: it has 1,048,581 characters/,
      ),
    ]);
    expect([stderr, readFileSync(path, "utf8")]).toEqual([expect.stringContaining(path), long]);
  });
});

describe("a request whose answer is lost", () => {
  const itemsOf = async (kind: string, id: number) =>
    (await member.call("GET", `/${kind}s/?incident_id=${id}`)).body.items;

  test.each([
    ["task", ["task", "add", "Order disks", "--due", "2h"]],
    ["document", ["doc", "new", "Dashboard", "--link", "https://a.example/"]],
  ])("is sent again by the same command, and adds one %s", async (kind, words) => {
    const { id, name } = await reported();
    const person = await somebody();
    const command = ["inc", ...words, "-i", name];
    const losing = person.with({
      fetch: async (url, init) => {
        const response = await fetchAt(server, url, init);
        return init.method === "POST" ? new Response("<html>", { status: 502 }) : response;
      },
    });
    for (const _ of [1, 2])
      expect(await losing.svc(...command)).toEqual({
        code: 1,
        stdout: "",
        stderr: `To try again, repeat the command: nothing is added twice.\nsvc: ${server.url} is not available (HTTP 502)\n`,
      });
    expect(drafts(person.home)).toHaveLength(1);
    server.clock.advance(60);
    const [added] = await itemsOf(kind, id);
    expect(await person.svc(...command)).toEqual({
      code: 0,
      stdout: `${added.id}\n`,
      stderr: expect.stringContaining(`${name}: Broken\n`),
    });
    expect([(await itemsOf(kind, id)).length, drafts(person.home)]).toEqual([1, []]);
    // Another one is meant.
    expect((await person.svc(...command)).code).toBe(0);
    expect(await itemsOf(kind, id)).toHaveLength(2);
  });

  test("is forgotten after a day, and when the server refuses it", async () => {
    const { name } = await reported();
    const person = await somebody();
    await person.with(gone).svc("inc", "task", "add", "-i", name, "Old");
    const [path = ""] = drafts(person.home);
    const { at, ...draft } = JSON.parse(readFileSync(path, "utf8"));
    writeFileSync(path, JSON.stringify({ ...draft, at: at - 86_400_001 }));
    const other = ["inc", "doc", "new", "-i", name, "Bad", "--link", "no link"];
    await person.with(gone).svc(...other);
    await person.svc("inc", "task", "add", "-i", name, "Another");
    expect(drafts(person.home)).toEqual([expect.stringContaining("/document-")]);
    expect((await person.svc(...other)).code).toBe(1);
    expect(drafts(person.home)).toEqual([]);
  });
});
