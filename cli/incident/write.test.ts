import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { drafts, editor } from "../../tests/support/cli/drafts.ts";
import { type CliUser, cliUser, fetchAt } from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import type { Io } from "../io.ts";
import { zonedTime } from "../when.ts";

let { server, member, ids, reported, notesOf } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, member, ids, reported, notesOf } = given);
});

let carol: CliUser;
beforeAll(async () => {
  carol = await cliUser(server, "carol@example.com");
});

const stateOf = async (id: number) => (await member.call("GET", `/incidents/${id}`)).body;
/** A user without drafts. */
const somebody = async () => carol.elsewhere();

describe("svc incident note", () => {
  test("adds a note, and says to which incident", async () => {
    const { id, name } = await reported("Broken \u05d0");
    expect(await carol.svc("incident", "note", "-i", name, "Disk is full")).toEqual({
      code: 0,
      stdout: "",
      stderr: `${name}: Broken \u05d0\n`,
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

  test.each([-90, 20])("takes times by the server's clock: here %i minutes", async (minutes) => {
    const { name } = await reported();
    const { clock } = server;
    const now = () => new Date(clock.now().getTime() + minutes * 60_000);
    const person = carol.with({ clock: { now } });
    const at = (seconds: number) => new Date(clock.now().getTime() + seconds * 1000);
    const two = (number: number) => String(number).padStart(2, "0");
    const timeOfDay = `${two(at(-60).getHours())}:${two(at(-60).getMinutes())}`;
    for (const [time, noted] of [
      ["5m", at(-300)],
      [timeOfDay, new Date(at(-60).setSeconds(0, 0))],
      [at(-1800).toISOString(), at(-1800)],
    ] as const) {
      const { stdout } = await person.svc("inc", "note", name, "Text", "--at", time, "--json");
      expect([time, JSON.parse(stdout).at]).toEqual([time, noted.toISOString()]);
    }
    expect(await person.svc("inc", "list", "--since", "1m", "--json")).toMatchObject({
      code: 0,
      stdout: expect.stringContaining(`"${name}"`),
    });
    const { stdout } = await person.svc("inc", "task", "add", name, "Text", "--due", "2h", "--json");
    expect(JSON.parse(stdout).resolve_by).toBe(at(7200).toISOString());
  });

  test.each([
    [20, "ahead of"],
    [-20, "behind"],
  ])("refuses a relative time if the clock proves wrong afterwards, by %i minutes", async (minutes, by) => {
    const { id, name } = await reported();
    const now = () => new Date(server.clock.now().getTime() + minutes * 60_000);
    const lost = Object.assign(new Error("lost"), { code: "ECONNRESET" });
    const person = carol.with({
      clock: { now },
      fetch: (url, init) =>
        url.endsWith("/healthcheck") ? Promise.reject(lost) : fetchAt(server, url, init),
    });
    const zoned = new Date(server.clock.now().getTime() - 1_800_000).toISOString();
    for (const words of [
      ["note", name, "Text", "--at", "5m"],
      ["note", name, "Text", "--at", "2026-01-01 10:00"],
      ["task", "add", name, "Text", "--due", "2h"],
      ["list", "--since", "5m"],
      ["watch", name, "--since", "5m"],
      ["watch", "--since", "5m"],
    ])
      expect(await person.svc("inc", ...words)).toMatchObject({
        code: 2,
        stderr: expect.stringContaining(`: the clock of this machine is 20 minutes ${by} that of`),
      });
    expect((await person.svc("inc", "note", name, "Text", "--at", zoned)).code).toBe(0);
    expect((await person.svc("inc", "list", "--since", zoned)).code).toBe(0);
    expect((await person.svc("inc", "note", name, "Now")).code).toBe(0);
    expect((await notesOf(id)).sort()).toEqual(["Now", "Text"]);
    const noted = await carol.svc("inc", "note", name, "Text", "--at", "5m");
    const at = zonedTime(new Date(server.clock.now().getTime() - 300_000));
    expect(noted.stderr).toBe(`${name}: Broken\nNoted at ${at} (5m ago)\n`);
  });

  test("takes words that begin with a hyphen after --", async () => {
    const { id, name } = await reported();
    const bare = await carol.svc("inc", "note", name, "-x is not an option");
    expect(bare).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("-x. TEXT that begins with a hyphen goes after --\n"),
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
    expect((await carol.svc("inc", "doc", "show", "--", "-d", "-i", name)).stderr).toContain(
      "unexpected argument: -i",
    );
    expect((await carol.svc("inc", "doc", "show", "-i", name, "--")).stderr).toContain(
      "missing argument: DOCUMENT",
    );
  });

  test("takes other first words with a number for the text, as say and task add do", async () => {
    const person = await somebody();
    person.env.SVC_INCIDENT = "INC-1";
    expect((await person.svc("inc", "note", "UTF-8", "is", "broken")).code).toBe(0);
    expect(await notesOf(ids.incidentId)).toContain("UTF-8 is broken");
    expect((await person.svc("inc", "say", "sev-1", "for", "me")).code).toBe(0);
    const task = await person.svc("inc", "task", "add", "CVE-2024", "patch", "--json");
    expect(JSON.parse(task.stdout).description).toBe("CVE-2024 patch");
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
    [["-F", "/nonexistent"], 1, "cannot read /nonexistent: there is no such file"],
    [["-F", "/"], 1, "cannot read /: it is a directory"],
    [["text", "--at", "tomorrow"], 2, '--at: "tomorrow" is not a time such as'],
    [["text", "--at", "2999-01-01"], 2, "--at: 2999-01-01 is in the future"],
    [["text", "--at", "23:59:59"], 2, "--at: 23:59:59 is still to come, it is "],
  ])("refuses %p", async (args, code, message) => {
    const ran = await carol.svc("inc", "note", "-i", "INC-1", ...args);
    expect(ran).toMatchObject({ code, stderr: expect.stringContaining(message) });
  });

  test("to an incident that does not exist opens no editor", async () => {
    const { code, stderr } = await carol.svc("inc", "note", "-i", "INC-99999", "-e");
    expect([code, stderr]).toEqual([1, expect.stringContaining("there is no incident INC-99999")]);
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
      conditions: "Better",
      actions: "",
      needs: "Sleep\n# Actions\nmore",
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
});

describe("the state of an incident", () => {
  test("goes from Active to Stable, to Closed and back", async () => {
    const { id, name } = await reported();
    expect((await carol.svc("inc", "stable", name)).stderr).toBe(`${name}: Broken (Stable)\n`);
    expect((await carol.svc("inc", "stable", name)).stderr).toBe(`${name}: Broken (Stable)\n`);
    expect(await carol.svc("inc", "close", name, "-r", "Rolled back")).toEqual({
      code: 0,
      stdout: "",
      stderr: `${name}: Broken (Closed)\n`,
    });
    expect(await stateOf(id)).toMatchObject({ status: "Closed", resolution: "Rolled back", version: 3 });
    expect(await carol.svc("inc", "stable", name)).toMatchObject({
      code: 1,
      stderr: `svc: ${name} is Closed; to open it again: svc incident reopen ${name}\n`,
    });
    expect(await carol.svc("inc", "close", name)).toMatchObject({ code: 0 });
    expect((await stateOf(id)).version).toBe(3);
    const { stdout } = await carol.svc("inc", "reopen", name, "--json");
    expect(JSON.parse(stdout)).toMatchObject({ status: "Active", resolution: "Rolled back" });
  });
});

test("a change of the state says how many tasks are left", async () => {
  const { id, name } = await reported();
  for (const description of ["One", "Two"])
    await member.call("POST", "/tasks/", { incident_id: id, description });
  const left = `Still open: 2 tasks (svc incident task list ${name})\n`;
  expect((await carol.svc("inc", "stable", name)).stderr).toBe(`${name}: Broken (Stable)\n${left}`);
  expect((await carol.svc("inc", "close", name)).stderr).toBe(`${name}: Broken (Closed)\n${left}`);
  expect((await carol.svc("inc", "reopen", name)).stderr).toBe(`${name}: Broken (Active)\n`);
});

test("a change keeps the fields that only a newer server knows", async () => {
  const { id, name } = await reported();
  const { body: task } = await member.call("POST", "/tasks/", { incident_id: id, description: "Restart" });
  const written: Record<string, unknown>[] = [];
  const newer: Partial<Io> = {
    fetch: async (url, init) => {
      if (init.method === "PUT") {
        const { severity, ...known } = JSON.parse(String(init.body));
        written.push({ severity, version: known.version });
        return fetch(url, { ...init, body: JSON.stringify(known) });
      }
      const response = await fetch(url, init);
      if (!/\/(incidents|tasks)\/[^/]+$/.test(url)) return response;
      return Response.json({ ...(await response.json()), severity: 3 }, response);
    },
  };
  for (const words of [
    ["stable", name],
    ["task", "done", String(task.id)],
  ])
    expect(await carol.with(newer).svc("inc", ...words)).toMatchObject({ code: 0 });
  expect(written).toEqual([
    { severity: 3, version: expect.any(Number) },
    { severity: 3, version: 1 },
  ]);
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
    const other = meeting(() => changed(id, { resolution: "Theirs" }));
    const ran = await carol.with(other).svc("inc", "edit", name, "-r", "Mine", "--json");
    const [kept] = drafts(carol.home);
    expect(JSON.parse(ran.stderr.split("\n").at(-2)!).error.message.split("\n")).toEqual([
      `The resolution of ${name} has been changed by somebody else in the meantime; nothing was saved.`,
      bothVersions,
      `Your text is kept. To send it: svc incident edit ${name} -F ${kept}`,
    ]);
    expect(await stateOf(id)).toMatchObject({ resolution: "Theirs" });
  });

  test("of a field without a text ends with what to do", async () => {
    const { id, name } = await reported();
    const also = meeting(() => changed(id, { title: "Also theirs" }));
    const { stderr } = await carol.with(also).svc("inc", "edit", name, "--title", "Mine", "--json");
    expect(JSON.parse(stderr).error.message).toBe(
      `The title of ${name} has been changed by somebody else in the meantime; nothing was saved.\nTo save yours all the same, repeat the command.`,
    );
  });

  test("to the same value is no conflict", async () => {
    const { id, name } = await reported();
    const other = meeting(() => changed(id, { status: "Closed" }));
    expect((await carol.with(other).svc("inc", "close", name, "-r", "Done")).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({ status: "Closed", resolution: "Done" });
  });

  test("of description and resolution at once merges both", async () => {
    const { id, name } = await reported();
    await changed(id, { resolution: "Fixed" });
    let count = 0;
    const other: Partial<Io> = {
      fetch: async (url, init) => {
        count += init.method === "PUT" ? 1 : 0;
        if (init.method === "PUT" && count === 1) await changed(id, { resolution: "Theirs\n\nFixed" });
        if (init.method === "PUT" && count === 2) await changed(id, { description: "Theirs\n\nFirst" });
        return fetch(url, init);
      },
    };
    const person = await somebody();
    const words = ["-d", "First\n\nMine", "-r", "Fixed\n\nMine"];
    expect((await person.with(other).svc("inc", "edit", name, ...words)).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({
      description: "Theirs\n\nFirst\n\nMine",
      resolution: "Theirs\n\nFixed\n\nMine",
    });
    expect(drafts(person.home)).toEqual([]);
  });
});

const bothVersions =
  'Your text now has both versions where both of you changed it, between "<<<<<<< yours" and ">>>>>>> theirs": edit it first.';

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
    expect((await carol.svc("inc", "edit", name, ...args)).stderr).toBe(`${name}: [Restricted] New\n`);
    const after = await stateOf(id);
    expect(after).toMatchObject({
      title: "New",
      description: "Second",
      resolution: "So far",
      visibility: "Restricted",
      version: 2,
    });
    expect((await carol.svc("inc", "edit", name, ...args)).code).toBe(0);
    const unchanged = carol.with(editor((text) => text));
    expect((await unchanged.svc("inc", "edit", name, "-e")).code).toBe(0);
    expect((await stateOf(id)).version).toBe(2);
  });

  test("sets and clears the times of the impact", async () => {
    const { id, name } = await reported();
    const edited = await carol.svc("inc", "edit", name, "--impact-start", "2h", "--impact-end", "30m");
    expect([edited.code, edited.stderr]).toEqual([
      0,
      expect.stringMatching(
        /^INC-\d+: Broken\nImpact started at .* \(2h ago\)\nImpact ended at .* \(30m ago\)\n$/,
      ),
    ]);
    const { impact_started_at: start, impact_ended_at: end } = await stateOf(id);
    const shown = `Impact from ${start} to ${end} (1 hour 30 minutes)`;
    expect((await carol.svc("inc", "view", name)).stdout).toContain(`\n${shown}\n`);
    await carol.svc("inc", "edit", name, "--impact-end", "");
    expect((await carol.svc("inc", "view", name)).stdout).toContain(`\nImpact since ${start}\n`);
  });

  test("in the editor keeps what was written there, also for an option", async () => {
    const { id, name } = await reported();
    const edit = editor((text) => text.replace("# Title\n\nTyped", "# Title\n\nEdited"));
    const args = ["edit", name, "-e", "--title", " Typed ", "-r", "So far"];
    expect((await carol.with(edit).svc("inc", ...args)).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({ title: "Edited", resolution: "So far" });
    const unchanged = carol.with(editor((text) => text));
    expect((await unchanged.svc("inc", ...args)).code).toBe(0);
    expect(await stateOf(id)).toMatchObject({ title: "Typed", description: "First" });
  });

  test.each([
    [["--restricted", "--open"], "give either --restricted or --open"],
    [["--title", "a\nb"], "the title must be a single line of text"],
    [["--impact-start", "2199-01-01"], "--impact-start: 2199-01-01 is in the future"],
  ])("refuses %p", async (args, message) => {
    const ran = await carol.svc("inc", "edit", "INC-1", ...args);
    expect(ran).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
  });
});
