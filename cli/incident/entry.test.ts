import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import { eq } from "drizzle-orm";
import { auditLog, conversation } from "../../drizzle/schema/index.ts";
import { drafts, editor, gone } from "../../tests/support/cli/drafts.ts";
import { type CliUser, cliUser, wideTerminal } from "../../tests/support/cli/incident_cli.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import { until } from "../../tests/support/process/until.ts";

let { server, member, reported } = {} as IncidentServer;
useIncidentServer(
  (given) => {
    ({ server, member, reported } = given);
  },
  { pluginConversation: "channel" },
);

let carol: CliUser;
let root: CliUser;
beforeAll(async () => {
  carol = await cliUser(server, "carol@example.com");
  root = await cliUser(server, "root@example.com", ["admin"]);
});

/** Runs a command that must succeed, and returns what it printed. */
async function ran(person: CliUser, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await person.svc("inc", ...args);
  expect([code, code === 0 || stderr]).toEqual([0, true]);
  return stdout;
}

/** Adds a note, a report or a message to a new incident, and returns its name. */
async function said(...args: string[]): Promise<{ id: number; name: string; entry: string }> {
  const { id, name } = await reported();
  // A step of the report opens it.
  await until("the conversation", () => server.db.$count(conversation, eq(conversation.incidentId, id)));
  await ran(carol, args[0]!, ...(args[0] === "update" ? [name] : ["-i", name]), ...args.slice(1));
  const { body } = await member.call("GET", `/incidents/${id}/events?sort=-id&limit=20`);
  const kinds = ["note", "report.written", "message.sent"];
  const event = body.items.find(({ kind }: { kind: string }) => kinds.includes(kind));
  return { id, name, entry: `e${event.id}` };
}

const timeline = async (name: string) => (await ran(carol, "view", name)).split("Timeline\n")[1]!;

describe("svc incident amend", () => {
  test("replaces the text of a note, and readers see who did it and when", async () => {
    const { name, entry } = await said("note", "The release of 11:40 is the cause");
    const at = server.clock.now().toISOString();
    expect(await timeline(name)).toContain(`  carol  The release of 11:40 is the cause (${entry})\n`);
    const amended = ["amend", "-i", name, entry.toUpperCase(), "The release", "of 11:45"];
    expect(await carol.svc("inc", ...amended)).toEqual({ code: 0, stdout: "", stderr: `${name}: Broken\n` });
    const after = await timeline(name);
    expect(after).toContain(`  carol  The release of 11:45 (${entry}, edited by carol, ${at})\n`);
    expect(after).toContain(`  carol  corrected ${entry}: The release of 11:45\n`);
    const exported = await ran(carol, "export", name);
    expect(exported).toContain(`The release of 11:45 (${entry}, edited by carol, ${at})`);
    expect(after + exported).not.toContain("11:40");
  });

  test("opens the editor with the current text; unchanged, nothing is sent", async () => {
    const { name, entry } = await said("say", "Who can restart it?");
    const args = ["inc", "amend", "-i", name, entry];
    const person = carol.elsewhere();
    expect(await person.with(editor((text) => text)).svc(...args, "-e")).toMatchObject({
      code: 0,
      stderr: "Nothing was changed.\n",
    });
    const edit = editor((text) => text.replace("restart it", "restart db-2"));
    expect((await person.with({ ...edit, canAsk: () => true }).svc(...args)).code).toBe(0);
    expect(await ran(carol, "messages", name)).toContain(
      `(${entry}, edited by carol, ${server.clock.now().toISOString()})\n  Who can restart db-2?\n`,
    );
    expect(drafts(person.home)).toEqual([]);
  });

  test("opens the parts of a report, which has no other form", async () => {
    const { id, name, entry } = await said("update", "-c", "Half of the orders fail", "-a", "Rolling back");
    const args = ["inc", "amend", "-i", name, entry];
    const edit = editor((text) =>
      text.replace("Half", "A third").replace("# Needs\n", "# Needs\n\nPeople\n"),
    );
    expect((await carol.with(edit).svc(...args, "-e")).code).toBe(0);
    const { body } = await member.call("GET", `/incidents/${id}/reports/`);
    expect(body.items).toMatchObject([
      { conditions: "A third of the orders fail", actions: "Rolling back", needs: "People" },
    ]);
    expect(await ran(carol, "view", name)).toMatch(
      new RegExp(`Last report \\(Carol, .*\\) \\(${entry}, edited by carol, .*\\)\n`, "i"),
    );
    const { code, stderr } = await carol.svc(...args, "All orders fail");
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`${entry} is a status report: correct it in`),
    ]);
    const person = carol.elsewhere();
    const broken = editor(() => "Just text");
    expect((await person.with(broken).svc(...args, "-e")).stderr).toContain('"# Conditions" is missing');
    expect(drafts(person.home)).toHaveLength(1);
  });

  test("merges both corrections, and shows how they differ in the same line", async () => {
    const { id, name, entry } = await said("note", "First");
    const theirs = async (text: string) => {
      const path = `/incidents/${id}/events/${entry.slice(1)}`;
      const { version } = (await member.call("GET", path)).body;
      expect((await member.call("PUT", path, { version, description: text })).http).toBe(200);
    };
    const person = carol.elsewhere();
    const edit = editor((text) => text.replace("First", "Mine"));
    const { code, stderr } = await person
      .with({
        runOnTerminal: async (...args) => {
          await theirs("Theirs");
          return edit.runOnTerminal(...args);
        },
      })
      .svc("inc", "amend", "-i", name, entry, "-e");
    const [kept = ""] = drafts(person.home);
    expect([code, stderr]).toEqual([
      1,
      [
        "  Theirs: Theirs",
        "  Yours:  Mine",
        `svc: The text of ${entry} has been changed by somebody else in the meantime; nothing was saved.`,
        'Your text now has both versions where both of you changed it, between "<<<<<<< yours" and ">>>>>>> theirs": edit it first.',
        `Your text is kept. To send it: svc incident amend -i ${name} ${entry} -F ${kept}`,
        "",
      ].join("\n"),
    ]);
    const again = ["inc", "amend", "-i", name, entry, "-F", kept];
    expect(await person.svc(...again)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("line 1 of your text is still the marker of a conflict"),
    });
    writeFileSync(kept, "Theirs\n\nMine");
    // The draft knows which text its author has seen.
    await theirs("Before\n\nTheirs");
    expect((await person.svc(...again)).code).toBe(0);
    const path = `/incidents/${id}/events/${entry.slice(1)}`;
    expect((await member.call("GET", path)).body.description).toBe("Before\n\nTheirs\n\nMine");
    expect(drafts(person.home)).toEqual([]);
  });

  test("keeps a text that cannot be sent", async () => {
    const { name, entry } = await said("note", "First");
    const person = carol.elsewhere();
    const edit = editor((text) => text.replace("First", "Second"));
    const { code, stderr } = await person
      .with({ ...gone, ...edit })
      .svc("inc", "amend", "-i", name, entry, "-e");
    const [kept = ""] = drafts(person.home);
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`To send it: svc incident amend -i ${name} ${entry} -F ${kept}\n`),
    ]);
    expect((await person.svc("inc", "amend", "-i", name, entry, "-F", kept)).code).toBe(0);
    expect([await timeline(name), existsSync(kept)]).toEqual([expect.stringContaining("Second ("), false]);
  });

  test("refuses an entry of another incident, an event that nobody said, and what is no entry", async () => {
    const { id, name, entry } = await said("note", "First");
    const other = await reported();
    expect(await carol.svc("inc", "amend", "-i", other.name, entry, "Mine")).toEqual({
      code: 1,
      stdout: "",
      stderr: `svc: ${entry} is not an entry of ${other.name}: name its incident with -i, or look at svc incident view ${other.name}\n`,
    });
    const { body } = await member.call("GET", `/incidents/${id}/events?kind=incident.reported`);
    expect((await carol.svc("inc", "amend", "-i", name, `${body.items[0].id}`, "Mine")).stderr).toBe(
      `svc: e${body.items[0].id} of ${name} is not a note, a report or a message\n`,
    );
    expect(await carol.svc("inc", "amend", name, entry, "Mine")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`"${name}" is not an entry, such as e1042`),
    });
    expect((await carol.svc("inc", "amend", "-i", name)).stderr).toContain("missing argument: ENTRY");
    expect((await carol.svc("inc", "amend", "-i", name, entry)).stderr).toContain("missing argument: TEXT");
  });
});

describe("svc incident withdraw", () => {
  test("asks first, and leaves who withdrew it and when", async () => {
    const { name, entry } = await said("note", "The password is hunter2");
    const args = ["inc", "withdraw", "-i", name, entry];
    const { code, stderr } = await carol.svc(...args);
    expect([code, stderr]).toEqual([
      1,
      `svc: This withdraws ${entry} of ${name}, by carol ${server.clock.now().toISOString()}: The password is hunter2 There is no terminal for the confirmation: add --yes\n`,
    ]);
    const asked: string[] = [];
    const answering = (answer: string) =>
      carol.with({
        ask: async (question) => {
          asked.push(question);
          return answer;
        },
      });
    expect((await answering("yes").svc(...args)).stderr).toBe(
      "svc: The name does not match: nothing was changed\n",
    );
    expect(await answering(entry).svc(...args)).toMatchObject({ code: 0, stderr: `${name}: Broken\n` });
    expect(asked[0]).toEndWith(`To continue, type its name (${entry}): `);
    const after = await timeline(name);
    expect(after).toContain(`  carol  Withdrawn by carol, ${server.clock.now().toISOString()} (${entry})\n`);
    expect(after).toContain(`  carol  withdrew ${entry}\n`);
    expect(after).not.toContain("hunter2");
    const again = await carol.svc(...args, "--yes");
    expect([again.code, again.stderr]).toEqual([
      0,
      expect.stringContaining(`${entry} of ${name} has no text any more: Withdrawn by carol, `),
    ]);
    expect((await carol.svc("inc", "amend", "-i", name, entry, "Mine")).stderr).toStartWith(
      `svc: ${entry} has no text any more: Withdrawn by carol, `,
    );
  });
});

test("svc incident history shows admins the earlier texts", async () => {
  const { name, entry } = await said("update", "-c", "Bad", "-a", "Rolling back");
  expect((await root.svc("inc", "history", "-i", name, entry)).stderr).toBe(`${entry} was never changed.\n`);
  const edit = editor((text) => text.replace("Bad", "Worse"));
  expect((await root.with(edit).svc("inc", "amend", "-i", name, entry, "-e")).code).toBe(0);
  await ran(carol, "withdraw", "-i", name, entry, "--yes");
  const at = server.clock.now().toISOString();
  const parts = (conditions: string) =>
    `  # Conditions\n\n  ${conditions}\n\n  # Actions\n\n  Rolling back\n\n  # Needs\n`;
  expect(await ran(root, "history", "-i", name, entry)).toBe(
    [
      `Version 1, carol, ${at}\n${parts("Bad")}`,
      `Version 2, root, ${at}\n${parts("Worse")}`,
      `Version 3, carol, ${at}\n  Withdrawn by carol, ${at}\n`,
    ].join("\n"),
  );
  expect(await carol.svc("inc", "history", "-i", name, entry)).toMatchObject({ code: 1, stdout: "" });
});

test("the name of an entry is dim, and after the text", async () => {
  const { name, entry } = await said("note", "Two\nlines");
  const stdout = wideTerminal(80);
  await carol.with({ stdout }).svc("inc", "view", name);
  expect(stdout.text).toContain(`Two\n      lines \x1b[2m(${entry})\x1b[0m\n`);
});

test("svc incident redact removes the text and its earlier ones, and says where it still is", async () => {
  const { name, entry } = await said("note", "The password is hunter2");
  await ran(carol, "amend", "-i", name, entry, "The password is hunter3");
  const args = ["inc", "redact", "-i", name, entry, "--reason", "A password"];
  expect((await root.svc("inc", "redact", "-i", name, entry, "--yes")).code).toBe(2);
  expect((await root.svc(...args)).stderr).toContain("There is no terminal for the confirmation: add --yes");
  expect((await carol.svc(...args, "--yes")).code).toBe(1);
  const piped = root.with({ readStdin: async () => Buffer.from("A password\n") });
  const { code, stderr } = await piped.svc(...args.with(-1, "-"), "--yes");
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^INC-\d+: Broken\n[\s\S]*[Bb]ackups/)]);
  const shown = await timeline(name);
  expect(shown).toContain(`  carol  Redacted by root, ${server.clock.now().toISOString()} (${entry})\n`);
  expect(shown).toContain(`  root  redacted ${entry}\n`);
  const audited = await server.db.select().from(auditLog);
  expect(audited).toContainEqual(
    expect.objectContaining({ data: expect.objectContaining({ reason: "A password" }) }),
  );
  expect(shown + (await ran(root, "history", "-i", name, entry))).not.toContain("hunter");
});

test("svc incident redact removes the earlier description by the name of its edit", async () => {
  const reported = await carol.svc(
    "inc",
    "report",
    "Described",
    "-d",
    "The password is hunter2",
    "-p",
    "urgent",
    "--json",
  );
  const { name } = JSON.parse(reported.stdout);
  await ran(carol, "edit", name, "-d", "It fails");
  const [, entry] = /Changed: description \((e\d+)\)/i.exec(await timeline(name)) ?? [];
  expect((await carol.svc("inc", "amend", "-i", name, entry!, "Other")).stderr).toContain("is not a note");
  const args = ["inc", "redact", "-i", name, entry!, "--reason", "A password", "--yes"];
  expect((await root.svc(...args)).code).toBe(0);
  expect(await ran(root, "view", name, "--json")).not.toContain("hunter2");
});
