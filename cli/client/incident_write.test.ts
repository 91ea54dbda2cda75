import { beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import type { Io } from "../io.ts";
import { type CliUser, cliUser } from "../testing/incident_cli.ts";

let { server, member, ids } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, member, ids } = given);
});

let carol: CliUser;
beforeAll(async () => {
  carol = await cliUser(server, "carol@example.com");
});

async function reported(title = "Broken") {
  const kind = { incident_type_id: ids.incidentTypeId, incident_priority_id: ids.incidentPriorityId };
  const { body } = await member.call("POST", "/incidents/", { title, description: "First", ...kind });
  return body as { id: number; name: string };
}
const stateOf = async (id: number) => (await member.call("GET", `/incidents/${id}`)).body;
const notesOf = async (id: number): Promise<string[]> => {
  const { body } = await member.call("GET", `/incidents/${id}/events?kind=note`);
  return body.items.map(({ description }: { description: string }) => description);
};
const drafts = (home: string): string[] => {
  const directory = join(home, "svc/drafts");
  return existsSync(directory) ? readdirSync(directory).map((file) => join(directory, file)) : [];
};
/** A user without drafts. */
const somebody = async () => carol.elsewhere();

/** An editor that does this with the text. */
function editor(
  change: (text: string) => string,
  exit: Awaited<ReturnType<Io["runOnTerminal"]>> = { code: 0 },
) {
  return {
    runOnTerminal: async (_: string, [path = ""]: readonly string[]) => {
      writeFileSync(path, change(readFileSync(path, "utf8")));
      return exit;
    },
  };
}
/** The server is gone for every change. */
const gone: Partial<Io> = {
  fetch: async (url, init) => {
    if (init.method === "GET") return fetch(url, init);
    throw Object.assign(new Error("gone"), { code: "ECONNREFUSED" });
  },
};

describe("svc incident note", () => {
  test("adds a note, and says to which incident", async () => {
    const { id, name } = await reported("Broken \u05d0");
    expect(await carol.svc("incident", "note", "-i", name, "Disk is full")).toEqual({
      ...{ code: 0, stdout: "", stderr: `${name}: Broken \u05d0\n` },
    });
    expect((await carol.svc("inc", "note", name, "Second", "note")).code).toBe(0);
    const { stdout } = await carol.svc("inc", "note", name, "Third", "--json");
    expect(JSON.parse(stdout)).toMatchObject({ kind: "note", description: "Third" });
    expect(await notesOf(id)).toEqual(["Third", "Second note", "Disk is full"]);
  });

  test("reads stdin for -, also as a file, and a file", async () => {
    const { id, name } = await reported();
    const piped = (text: string) => carol.with({ readStdin: async () => Buffer.from(text) });
    await piped("From\r\nstdin\n").svc("inc", "note", name, "-");
    await piped("Again\n").svc("inc", "note", "-i", name, "-F", "-");
    const file = join(carol.home, "file.md");
    writeFileSync(file, "\n  From a file\n\n");
    await carol.svc("inc", "note", "-i", name, "-F", file);
    expect(await notesOf(id)).toEqual(["  From a file", "Again", "From\nstdin"]);
    expect(existsSync(file)).toBe(true);
  });

  test.each([
    [20, "ahead of"],
    [-20, "behind"],
  ])("refuses a relative time if the clock of this machine is wrong by %i minutes", async (minutes, by) => {
    const { id, name } = await reported();
    const now = () => new Date(server.clock.now().getTime() + minutes * 60_000);
    const person = carol.with({ clock: { now } });
    const zoned = new Date(server.clock.now().getTime() - 1_800_000).toISOString();
    for (const words of [
      ["note", name, "Text", "--at", "5m"],
      ["note", name, "Text", "--at", "2026-01-01 10:00"],
      ["task", "add", name, "Text", "--due", "2h"],
    ])
      expect(await person.svc("inc", ...words)).toMatchObject({
        ...{
          code: 2,
          stderr: expect.stringContaining(`: the clock of this machine is 20 minutes ${by} that of`),
        },
      });
    expect((await person.svc("inc", "note", name, "Text", "--at", zoned)).code).toBe(0);
    expect((await person.svc("inc", "note", name, "Now")).code).toBe(0);
    expect((await notesOf(id)).sort()).toEqual(["Now", "Text"]);
    expect((await carol.svc("inc", "note", name, "Text", "--at", "5m")).code).toBe(0);
  });

  test("takes words that begin with a hyphen after --", async () => {
    const { id, name } = await reported();
    const bare = await carol.svc("inc", "note", name, "-x is not an option");
    expect(bare).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining("-x. TEXT that begins with a hyphen goes after --\n") },
    });
    expect((await carol.svc("inc", "note", name, "--", "-x is", "--not")).code).toBe(0);
    expect((await carol.svc("inc", "note", "--", name, "-y")).code).toBe(0);
    expect(await notesOf(id)).toEqual(["-y", "-x is --not"]);
    const title = await carol.svc("inc", "report", "-q", "--", "--title");
    expect((await carol.svc("inc", "view", "--json", "--", title.stdout.trim())).stdout).toContain(
      '"--title"',
    );
    for (const words of [
      [name, "--", "-x"],
      ["--", name, "-x"],
    ])
      expect((await carol.svc("inc", "view", ...words)).stderr).toContain("unexpected argument: -x");
    expect((await carol.svc("inc", "doc", "open", "--", "-d", "-i", name)).stderr).toContain(
      "unexpected argument: -i",
    );
    expect((await carol.svc("inc", "doc", "open", "-i", name, "--")).stderr).toContain(
      "missing argument: DOCUMENT",
    );
  });

  test("takes a first word that is an incident for the incident, also alone", async () => {
    const { id, name } = await reported();
    const file = join(carol.home, "file.md");
    writeFileSync(file, "From a file");
    expect((await carol.svc("inc", "note", name, "-F", file)).code).toBe(0);
    expect(await carol.svc("inc", "note", name)).toMatchObject({
      ...{ code: 2, stderr: expect.stringContaining("missing argument: TEXT") },
    });
    expect(await notesOf(id)).toEqual(["From a file"]);
  });

  test.each([
    ["an empty note", "", "the note is empty: nothing was sent"],
    ["a note of spaces", " \u200b\n\t", "the note is empty: nothing was sent"],
    [
      "a note of 1 MiB",
      "a".repeat(1_048_576),
      "the note is too long: it has 1,048,576 characters, and may have 20,000",
    ],
    ["a note of 5 MiB", "a".repeat(5_242_880), "stdin is longer than 4 MiB"],
    ["NUL", "a\0b", "stdin is binary: it contains NUL"],
    ["what is not UTF-8", Buffer.from([0x89, 0x50, 0x4e, 0x47]), "stdin is not text in UTF-8"],
  ])("refuses %s", async (_, text, message) => {
    const person = await somebody();
    const piped = person.with({ readStdin: async () => Buffer.from(text) });
    const { code, stderr } = await piped.svc("inc", "note", "INC-1", "-");
    expect([code, stderr, drafts(person.home)]).toEqual([1, `svc: ${message}\n`, []]);
  });

  test.each([
    [[], 2, "missing argument: TEXT (or -, --file or --editor)"],
    [["text", "-F", "-"], 2, "give only one of TEXT, --file and --editor"],
    [["-F", "/nonexistent"], 1, "cannot read /nonexistent: there is no such file"],
    [["-F", "/"], 1, "cannot read /: it is a directory"],
    [["text", "--at", "tomorrow"], 2, '--at: "tomorrow" is not a time such as'],
    [["text", "--at", "2999-01-01"], 2, "--at: 2999-01-01 is in the future"],
  ])("refuses %p", async (args, code, message) => {
    const ran = await carol.svc("inc", "note", "-i", "INC-1", ...args);
    expect(ran).toMatchObject({ code, stderr: expect.stringContaining(message) });
  });

  test("to an incident that does not exist opens no editor", async () => {
    const { code, stderr } = await carol.svc("inc", "note", "-i", "INC-99999", "-e");
    expect([code, stderr]).toEqual([1, expect.stringContaining("there is no incident INC-99999")]);
  });
});

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
      ...{ code: 1, stdout: "" },
      stderr: `Your text is kept in ${path}\nsvc: ed --wait ${how}; nothing was sent\n`,
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
    const { runOnTerminal } = await import("../run_on_terminal.ts");
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

  test.each(["note", "say", "update"])("of %s is kept when the server is gone", async (command) => {
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
    [["note", "INC-1", "--at", "2026-01-01T00:00Z", "-"], "note -i INC-1 --at 2026-01-01T00:00:00.000Z"],
    [["say", "--to", "alice", "-"], "say --to alice"],
    [["update", "INC-1", "-F", "-"], "update INC-1"],
    [["close", "-F", "-"], "close"],
    [["edit", "INC-1", "--title", "A b", "-F", "-"], "edit INC-1 --title 'A b'"],
    [["doc", "new", "INC-1", "Log", "-F", "-"], "doc new -i INC-1 Log --type reference"],
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
      ...{
        code: 1,
        stderr: expect.stringContaining(`To send it: svc incident ${again} -F ${path}\nsvc: cannot`),
      },
    });
    expect(readFileSync(path, "utf8")).toBe("Text\n");
  });

  test("for a description is the same when it is sent again", async () => {
    const { id, name } = await reported();
    const person = await somebody();
    const piped = { readStdin: async () => Buffer.from("Piped\n") };
    for (const [title, fetch] of [
      ["One", async () => Promise.reject(Object.assign(new Error("gone"), { code: "ECONNREFUSED" }))],
      ["Two", gone.fetch!],
    ] as const) {
      const ran = await person
        .with({ ...piped, fetch })
        .svc("inc", "edit", name, "--title", title, "-F", "-");
      const [, again = ""] = /To send it: svc (.*)\n/.exec(ran.stderr) ?? [];
      expect((await person.svc(...again.split(" "))).code).toBe(0);
      expect(await stateOf(id)).toMatchObject({ title, description: "Piped" });
      await carol.svc("inc", "edit", name, "-d", "Other");
    }
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
        /^Your text is kept in (.*)\nsvc: the \w+ is too long: it has 1,048,581 characters/,
      ),
    ]);
    expect([stderr, readFileSync(path, "utf8")]).toEqual([expect.stringContaining(path), long]);
  });
});

describe("svc incident say", () => {
  test("writes to everyone, or to a participant", async () => {
    const [id, name] = [ids.incidentId, "INC-1"];
    expect((await carol.svc("inc", "say", name, "Hello")).stderr).toBe(`${name}: Disk full\n`);
    expect((await carol.svc("inc", "say", name, "Only you", "--to", "alice")).code).toBe(0);
    const { body } = await member.call("GET", `/incidents/${id}/messages?sort=at`);
    expect(body.items.slice(-2)).toMatchObject([
      { text: "Hello", recipient: null },
      { text: "Only you", recipient: { email: "alice@example.com" } },
    ]);
    const other = await carol.svc("inc", "say", name, "Only you", "--to", "carol");
    expect(other).toMatchObject({ code: 2, stderr: expect.stringContaining("does not take part in") });
  });
});

describe("svc incident update", () => {
  const lastReport = async (id: number) =>
    (await member.call("GET", `/incidents/${id}/reports?limit=1`)).body.items[0];

  test("writes a report from options, or from a file with headings", async () => {
    const { id, name } = await reported();
    expect((await carol.svc("inc", "update", name, "-c", "Bad", "-a", "Rolling back")).stderr).toBe(
      `${name}: Broken\n`,
    );
    expect(await lastReport(id)).toMatchObject({ conditions: "Bad", actions: "Rolling back", needs: "" });
    const text = "# conditions\nBetter\n# Actions\n\n# Needs\nSleep\n# Actions\nmore";
    const piped = carol.with({ readStdin: async () => Buffer.from(text) });
    expect((await piped.svc("inc", "update", name, "-F", "-")).code).toBe(0);
    expect(await lastReport(id)).toMatchObject({
      ...{ conditions: "Better", actions: "", needs: "Sleep\n# Actions\nmore" },
    });
  });

  test("opens the editor with a template and the last report", async () => {
    const { id, name } = await reported();
    await carol.svc("inc", "update", name, "-c", "Bad --> worse");
    const edit = editor((text) => {
      expect(text).toContain("Conditions:\n  Bad -- > worse\n-->\n");
      return text
        .replace("# Conditions\n", "# Conditions\nGood\n")
        .replace("# Needs\n", "# Needs\n\nNothing");
    });
    const person = await somebody();
    expect((await person.with(edit).svc("inc", "update", name, "-e")).code).toBe(0);
    expect(await lastReport(id)).toMatchObject({ conditions: "Good", actions: "", needs: "Nothing" });
    expect(drafts(person.home)).toEqual([]);
  });

  test("keeps a text without its headings, and nothing of an empty one", async () => {
    const { name } = await reported();
    const person = await somebody();
    const same = await person.with(editor((text) => text)).svc("inc", "update", name, "-e");
    expect([same.stderr, drafts(person.home)]).toEqual(["svc: the report is empty: nothing was sent\n", []]);
    const ran = await person.with(editor(() => "Just text")).svc("inc", "update", name, "-e");
    expect(ran.stderr).toEndWith('svc: the heading "# Conditions" is missing, or not in its place\n');
    expect(readFileSync(drafts(person.home)[0]!, "utf8")).toBe("Just text");
  });

  test.each([
    [["-a", "Something"], 2, "missing option: --conditions"],
    [[], 2, "missing option: --conditions (or --file, or --editor)"],
    [["-c", "x", "-e"], 2, "give either --conditions"],
    [["-c", " "], 1, "the report is empty: nothing was sent"],
  ])("refuses %p", async (args, code, message) => {
    const ran = await carol.svc("inc", "update", "INC-1", ...args);
    expect(ran).toMatchObject({ code, stderr: expect.stringContaining(message) });
  });
});

describe("the state of an incident", () => {
  test("goes from Active to Stable, to Closed and back", async () => {
    const { id, name } = await reported();
    expect((await carol.svc("inc", "stable", name)).stderr).toBe(`${name}: Broken (Stable)\n`);
    expect((await carol.svc("inc", "stable", name)).stderr).toBe(`${name}: Broken (Stable)\n`);
    expect(await carol.svc("inc", "close", name, "-r", "Rolled back")).toEqual({
      ...{ code: 0, stdout: "", stderr: `${name}: Broken (Closed)\n` },
    });
    expect(await stateOf(id)).toMatchObject({ status: "Closed", resolution: "Rolled back", version: 3 });
    expect(await carol.svc("inc", "stable", name)).toMatchObject({
      ...{ code: 1, stderr: `svc: ${name} is Closed; to open it again: svc incident reopen ${name}\n` },
    });
    expect(await carol.svc("inc", "close", name)).toMatchObject({ code: 0 });
    expect((await stateOf(id)).version).toBe(3);
    const { stdout } = await carol.svc("inc", "reopen", name, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ status: "Active", resolution: "Rolled back" });
  });
});

describe("a change that meets another one", () => {
  /** Runs `other` between what the command reads and what it writes. */
  const meeting = (other: () => Promise<unknown>): Partial<Io> => {
    let isFirst = true;
    return {
      fetch: async (url, init) => {
        if (init.method === "PUT" && isFirst) {
          isFirst = false;
          await other();
        }
        return fetch(url, init);
      },
    };
  };
  const changed = async (id: number, change: object) => {
    const { body } = await member.call("GET", `/incidents/${id}`);
    const { http } = await member.call("PUT", `/incidents/${id}`, { ...body, ...change });
    expect(http).toBe(200);
  };

  test("of another field keeps both", async () => {
    const { id, name } = await reported();
    const other = meeting(() => changed(id, { title: "Theirs", resolution: "Theirs" }));
    expect((await carol.with(other).svc("inc", "edit", name, "-d", "Mine")).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({ title: "Theirs", resolution: "Theirs", description: "Mine" });
  });

  test("of the same field saves nothing, and shows both versions", async () => {
    const { id, name } = await reported();
    const other = meeting(() => changed(id, { title: "Theirs" }));
    const ran = await carol.with(other).svc("inc", "edit", name, "--title", "Mine", "-d", "Mine");
    expect(ran).toEqual({
      ...{ code: 1, stdout: "" },
      stderr: [
        `svc: The title of ${name} was changed by somebody else meanwhile; nothing was saved.`,
        "svc:   Theirs: Theirs",
        "svc:   Yours:  Mine",
        "",
      ].join("\n"),
    });
    expect(await stateOf(id)).toMatchObject({ title: "Theirs", description: "First" });
  });

  test("to the same value is no conflict", async () => {
    const { id, name } = await reported();
    const other = meeting(() => changed(id, { status: "Closed" }));
    expect((await carol.with(other).svc("inc", "close", name, "-r", "Done")).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({ status: "Closed", resolution: "Done" });
  });

  test("during the editor keeps the text", async () => {
    const { id, name } = await reported();
    const person = await somebody();
    const edit: Partial<Io> = {
      runOnTerminal: async (_, [path = ""]) => {
        await changed(id, { description: "Theirs" });
        writeFileSync(path, readFileSync(path, "utf8").replace("First", "Mine\nin two lines"));
        return { code: 0 };
      },
    };
    const { code, stderr } = await person.with(edit).svc("inc", "edit", name, "-e");
    const [path = ""] = drafts(person.home);
    expect([code, stderr]).toEqual([
      1,
      [
        `Your text is kept. To send it: svc incident edit ${name} -F ${path}`,
        `svc: The description of ${name} was changed by somebody else meanwhile; nothing was saved.`,
        "svc:   Theirs: Theirs",
        "svc:   Yours:  Mine",
        "svc:           in two lines",
        "",
      ].join("\n"),
    ]);
    expect((await person.svc("inc", "edit", name, "-F", path)).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({ title: "Broken", description: "Mine\nin two lines" });
  });
});

describe("svc incident edit", () => {
  test("changes fields, and nothing without a difference", async () => {
    const { id, name } = await reported();
    const args = [
      "--title",
      "New",
      "-d",
      "Second",
      "-r",
      "So far",
      "--restricted",
      "-p",
      "urgent",
      "-t",
      "outage",
    ];
    expect((await carol.svc("inc", "edit", name, ...args)).stderr).toBe(`${name}: New\n`);
    const after = await stateOf(id);
    expect(after).toMatchObject({
      ...{ title: "New", description: "Second", resolution: "So far", visibility: "Restricted", version: 2 },
    });
    expect((await carol.svc("inc", "edit", name, ...args)).code).toBe(0);
    const unchanged = carol.with(editor((text) => text));
    expect((await unchanged.svc("inc", "edit", name, "-e")).code).toBe(0);
    expect((await stateOf(id)).version).toBe(2);
  });

  test("in the editor changes title and description", async () => {
    const { id, name } = await reported();
    const edit = editor((text) => text.replace("Broken", "Fixed").replace("First", "- one\n- two\n"));
    expect((await carol.with(edit).svc("inc", "edit", name, "-e")).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({ title: "Fixed", description: "- one\n- two" });
  });

  test.each([
    [[], "nothing to change: give an option, or --editor"],
    [["--restricted", "--open"], "give either --restricted or --open"],
    [["-d", "x", "-e"], "give only one of --description, --file and --editor"],
    [["--title", "a\nb"], "the title must be a single line of text"],
  ])("refuses %p", async (args, message) => {
    const ran = await carol.svc("inc", "edit", "INC-1", ...args);
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });
});
