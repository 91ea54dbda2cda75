import { beforeEach, describe, expect, test } from "bun:test";
import { eq, type SQL, sql } from "drizzle-orm";
import { getTableConfig, type PgTable } from "drizzle-orm/pg-core";
import { event, incident, incidentType, individual, participant, task } from "../../drizzle/schema/index.ts";
import { inTheWay } from "../../tests/support/database/blocked.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import { personOf } from "../../tests/support/http/people.ts";

let given: IncidentServer;
useIncidentServer(
  (all) => {
    given = all;
  },
  { pluginDocument: "markdown", pluginConversation: "channel" },
);

let id: number;
let path: string;
beforeEach(async () => {
  ({ id } = await given.reported("Disk *full*", { description: "Nobody can | pay" }));
  path = `/incidents/${id}`;
});

const call = async (method: string, of: string, body?: object) => {
  const answer = await given.member.call(method, `${path}${of}`, body);
  expect([method, of, answer.http < 300]).toEqual([method, of, true]);
  return answer.body;
};
const note = async (description: string) =>
  (await call("POST", "/events", { description })) as { id: number };
const draft = (body: object = {}) => call("POST", "/postmortem/", body);
const edit = async ({ document_id, version }: { document_id: number; version: string }, text: string) => {
  const { http } = await given.member.call("PUT", `/documents/${document_id}/content`, { text, version });
  expect(http).toBe(200);
};
/** Begins the post-mortem without svc. */
const begun = async (text?: string): Promise<number> => {
  const wanted = { name: "Review", description: "", resource_type: "review", weblink: null, incident_id: id };
  const { body } = await given.member.call("POST", "/documents/", wanted);
  if (text !== undefined) await edit({ document_id: body.id, version: null as unknown as string }, text);
  return body.id;
};
const close = (status = "Closed") => edited({ status });
const edited = async (change: object) => {
  const { version, ...now } = await call("GET", "");
  const names = [
    "title",
    "description",
    "visibility",
    "incident_type_id",
    "incident_priority_id",
    "resolution",
  ];
  const kept = Object.fromEntries(names.map((name) => [name, now[name]]));
  await call("PUT", "", { ...kept, status: now.status, version, ...change });
};
const lineOf = (text: string, words: string) => text.split("\n").findIndex((line) => line.includes(words));

describe("a post-mortem", () => {
  test("is drafted from what people did and said, as a document of the incident", async () => {
    await note("First line\n- second\n# third");
    await call("POST", "/reports/", { conditions: "All down", actions: "Restart", needs: "Coffee" });
    await call("POST", "/messages/", { text: "Hello <all>" });
    const { http, body: task } = await given.member.call("POST", "/tasks/", {
      incident_id: id,
      description: "Buy [x] disks",
    });
    expect(http).toBe(201);
    // Who joins gets a role.
    const of = { incidentId: id, at: given.server.clock.now(), actor: "carol@example.com", source: "core" };
    const data = { participant_id: 1, role: "commander" };
    await given.server.db.insert(event).values([
      { ...of, data, kind: "participant.joined", description: "carol joined" },
      { ...of, data, kind: "role.assumed", description: "carol became commander" },
      { ...of, data, kind: "role.assumed", description: "carol became scribe" },
    ]);
    const preview = await call("GET", "/postmortem/");
    expect(preview).toMatchObject({ document_id: null, new_entries: [], missing_sections: [] });
    const drafted = await draft();
    expect(drafted.text).toBe(preview.text);
    expect(drafted.text).toStartWith(`# INC-`);
    for (const words of [
      "Disk \\*full\\*",
      "Nobody can \\| pay",
      "First line  \n  \\- second  \n  \\# third",
      "Conditions: All down",
      "Hello \\<all\\>",
      `- [Buy \\[x\\] disks](${given.server.url}/app/tasks/${task.id}): due`,
      "## What went badly",
    ])
      expect(drafted.text).toContain(words);
    // What the server did by itself is left out.
    expect(drafted.text).not.toContain("Conversation opened");
    expect(drafted.text.match(/.* became .*$/gm)).toEqual([expect.stringContaining("carol became scribe")]);
    expect(drafted.empty_sections).toEqual(["Impact", "What went well", "What went badly"]);
    const { body } = await given.member.call("GET", `/documents/${drafted.document_id}/content`);
    expect(body).toEqual({ text: drafted.text, version: drafted.version });
    expect(await call("GET", "/postmortem/")).toEqual(drafted);
  });

  test("names who said something, and who did it once", async () => {
    for (const words of ["carol closed the valve", "carolyn closed the valve"]) await note(words);
    await given.server.db.insert(event).values(
      ["carol did it", "carolyn did it"].map((description) => ({
        ...{ incidentId: id, at: given.server.clock.now(), actor: "carol@example.com" },
        ...{ kind: "incident.updated", source: "core", description },
      })),
    );
    const { text } = await draft();
    expect(text.match(/(?<=^- \[[^\]]*\]\([^)]*\) ).*carol.* (closed|did) .*/gm)).toEqual([
      "**carol** carol closed the valve",
      "**carol** carolyn closed the valve",
      "carol did it",
      "**carol** carolyn did it",
    ]);
  });

  test("that is drafted again gets only what is new, in its place, and keeps every edit", async () => {
    const first = await note("First note");
    const drafted = await draft();
    const edited = drafted.text
      .replace("_Whom did it hurt, how, and for how long?_", "Everybody.")
      .replace(/ First note/, " First note, as *we* know now  \n  with a second line")
      .replace(
        "Everybody.",
        `Everybody, [as here](/app/incidents/9${id}?at=99999999#event-99999999), [and](/app/tasks/99999999).\n\n- [12:00](/app/incidents/9${id}?at=99999999#event-99999999) Elsewhere`,
      )
      .replace("## What went well\n", "## What went well, really\n")
      .replace(/^- .*reported: .*\n/m, "");
    await edit(drafted, edited);
    given.server.clock.advance(60);
    const late = await note("Late note");
    await call("POST", "/events", {
      description: "Between",
      at: new Date(+given.server.clock.now() - 30_000),
    });
    const seen = await call("GET", "/postmortem/");
    expect(seen.new_entries.map(({ text }: { text: string }) => text)).toEqual(["Between", "Late note"]);
    expect(seen.missing_sections).toEqual([]);
    const { text } = await draft();
    const kept = text.split("\n");
    // Everything is still there, in the same order.
    let at = -1;
    for (const line of edited.trimEnd().split("\n")) {
      const next = kept.indexOf(line, at + 1);
      expect([line, next > at]).toEqual([line, true]);
      at = next;
    }
    expect(text).not.toContain("reported: ");
    const order = ["First note", "with a second line", "Between", "Late note"].map((words) =>
      lineOf(text, words),
    );
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(order[1]).toBe(order[0]! + 1);
    expect(text).toContain(`?at=${late.id}#event-${late.id})`);
    expect(text).not.toContain("## What went well\n");
    expect(await draft()).toMatchObject({ text, new_entries: [] });
    expect(first.id).toBeLessThan(late.id);
  });

  test("that lost its newest lines, or their links, does not get them again", async () => {
    const task = { incident_id: id, description: "Buy disks" };
    expect((await given.member.call("POST", "/tasks/", task)).http).toBe(201);
    const [gone, unlinked] = [await note("Deleted note"), await note("Unlinked note")];
    const drafted = await draft();
    const text = drafted.text
      .replace(/^- .*Deleted note\n/m, "")
      .replace(/\[[^\]]*\]\(.*\) (.*Unlinked note)$/m, "$1")
      .replace(/^- \[Buy disks\].*\n/m, "");
    expect(text).not.toMatch(new RegExp(`event-(${gone.id}|${unlinked.id})\\)|^- \\[Buy disks`, "m"));
    await edit(drafted, text);
    const nothing = { new_entries: [], new_tasks: [] };
    expect(await call("GET", "/postmortem/")).toMatchObject(nothing);
    expect(await draft()).toMatchObject({ text, ...nothing });
    // So it is with lines that were added later, also when all lines are deleted.
    const late = await note("Late note");
    const added = await draft();
    expect(added.text).toContain("Late note");
    await edit(added, "# Mine");
    expect(await call("GET", "/postmortem/")).toMatchObject({ ...nothing, missing_sections: [] });
    // What was not added is still new.
    const last = await note("Last note");
    expect((await draft({ entries: [] })).new_entries).toMatchObject([{ event_id: last.id }]);
    // An empty text is drafted anew.
    await edit(await call("GET", "/postmortem/"), "");
    const anew = await draft();
    for (const words of ["Deleted note", "Unlinked note", "Late note", "Buy disks"])
      expect(anew.text).toContain(words);
    expect(late.id).toBeLessThan(last.id);
  });

  test("that links to an entry that there is not gets the others all the same", async () => {
    const drafted = await draft();
    const link = (event: number) => `\n- [12:00](/app/incidents/${id}?at=${event}#event-${event}) Nothing\n`;
    await edit(drafted, `${drafted.text}${link(99_999_999)}`);
    const late = await note("Late note");
    const { new_entries } = await call("GET", "/postmortem/");
    expect(new_entries).toMatchObject([{ event_id: late.id }]);
  });

  test("that is another document knows only what its own lines link to", async () => {
    const drafted = await draft();
    expect((await given.admin.call("DELETE", `/documents/${drafted.document_id}`)).http).toBe(204);
    const document_id = await begun(drafted.text);
    const { version, new_entries } = await call("GET", "/postmortem/");
    expect(new_entries).toEqual([]);
    await edit({ document_id, version }, "# Ours");
    expect((await call("GET", "/postmortem/")).new_entries).not.toEqual([]);
  });

  test("has the first 2,000 characters of each entry, and no more entries than there is room for", async () => {
    // Each tab becomes 24 characters.
    const noteLong = (name: string) => note(`${name}\n${"\t".repeat(19_000)}end`);
    for (let n = 1; n <= 20; n += 1) await noteLong(`Note ${n}`);
    const drafted = await draft();
    expect(drafted.text.length).toBeLessThan(900_000);
    expect(drafted.text.match(/&nbsp;…$/gm)).toHaveLength(18);
    const all = `_Not all of them are here: see [the incident](${given.server.url}/app/incidents/${id})._`;
    expect(drafted.text).toContain(`…\n\n${all}\n\n## What went well`);
    const names = ({ new_entries }: { new_entries: { text: string }[] }) =>
      new_entries.map(({ text }) => text.split("\n")[0]);
    expect(names(drafted)).toEqual(["Note 19", "Note 20"]);
    const full = await given.member.call("POST", `${path}/postmortem/`, {});
    expect([full.http, full.body.detail]).toEqual([
      409,
      "The post-mortem has no room for more: shorten its text, or the description",
    ]);
    await edit(drafted, drafted.text.replace(/Note 1 .*\n.*…/, "Note 1"));
    const added = await draft();
    expect([lineOf(added.text, "Note 19") > 0, names(added)]).toEqual([true, ["Note 20"]]);
  });

  test("has the newest 2,000 entries of people, the first 2,000 tasks and 200 people, and says so", async () => {
    const { db } = given.server;
    const many = async (table: PgTable, row: number, count: number, changed: Record<string, SQL>) => {
      const { columns, name } = getTableConfig(table);
      const copied = columns
        .filter(({ name, generated }) => name !== "id" && !generated)
        .map(({ name }) => name);
      const values = copied.map((column) => changed[column] ?? sql.identifier(column));
      await db.execute(
        sql`insert into ${sql.identifier(name)} (${sql.join(
          copied.map((one) => sql.identifier(one)),
          sql`, `,
        )})
          select ${sql.join(values, sql`, `)} from ${sql.identifier(name)}, generate_series(1, ${count}::int) as n where id = ${row}`,
      );
    };
    const first = await note("First note");
    await many(event, first.id, 2000, { kind: sql`'participant.joined'` });
    const wanted = { incident_id: id, description: "Task 0", assignees: [] };
    const made = await given.member.call("POST", "/tasks/", wanted);
    await many(task, made.body.id, 200, { description: sql`'Task ' || n` });
    const began = new Date(+given.server.clock.now() - 40 * 60_000);
    await db.update(incident).set({ impactStartedAt: began }).where(eq(incident.id, id));
    const last = await note("Last note");
    const { text, gaps } = await call("GET", "/postmortem/");
    expect(text).toContain("First note");
    expect(text.match(/^- \[Task \d+\]/gm)).toHaveLength(201);
    for (const words of ["_Not all of them", "and others"]) expect(text).not.toContain(words);
    expect(gaps).toHaveLength(1);
    await many(event, last.id, 1999, {});
    await many(task, made.body.id, 1800, { description: sql`'Task ' || n` });
    await many(individual, given.ids.bob, 200, {
      name: sql`'Person ' || n`,
      email: sql`n || '@people.example.com'`,
    });
    await db.execute(sql`
      insert into ${participant} (incident_id, individual_id, joined_at)
      select ${id}, id, ${began.toISOString()}::timestamptz from ${individual} where email like '%@people.example.com'`);
    const full = await call("GET", "/postmortem/");
    expect(full.text).not.toContain("First note");
    expect(full.text.match(/Last note$/gm)).toHaveLength(2000);
    expect(full.text).toContain("Last note\n\n_Not all of them are here");
    expect(full.text.match(/^- \[Task \d+\]/gm)).toHaveLength(2000);
    expect(full.text.match(/_Not all of them are here/g)).toHaveLength(2);
    expect(full.text.match(/^\| People \|.*; and others \|$/gm)).toHaveLength(1);
    expect(full.gaps).toEqual([]);
  });

  test("that has no room for the description leaves no document", async () => {
    const long = "\t".repeat(30_000);
    await given.server.db
      .update(incident)
      .set({ description: `a\n${long}b`, resolution: `a\n${long}b` })
      .where(eq(incident.id, id));
    expect((await given.member.call("POST", `${path}/postmortem/`, {})).http).toBe(409);
    expect(
      (await given.member.call("GET", `/documents/?incident_id=${id}&resource_type=review`)).body.items,
    ).toEqual([]);
    const begin = await begun("# Ours");
    expect((await given.member.call("POST", `${path}/postmortem/`, {})).http).toBe(409);
    expect((await draft({ sections: false })).document_id).toBe(begin);
  });

  test("that was begun without svc keeps its own sections, and gets the others", async () => {
    await note("It was the disk");
    const own = "# Review\n\n```\n## Impact\n```\n\n## Timeline ##\n\nIt began at noon.\n\n## Why\n\nA disk.";
    const made = await begun(own);
    expect(await call("GET", "/postmortem/")).toMatchObject({
      document_id: made,
      missing_sections: ["Summary", "Impact", "What went well", "What went badly", "Follow-up"],
      empty_sections: [],
    });
    const { text } = await draft({ sections: false });
    expect(text).toMatch(
      /^# Review\n\n```\n## Impact\n```\n\n## Timeline ##\n\nIt began at noon.\n\n(- \[.*\n){2}\n## Why\n\nA disk.\n$/,
    );
    expect((await call("GET", "/events?kind=postmortem.drafted")).items).toHaveLength(1);
  });

  test("takes no longer than its text, whatever that is", async () => {
    for (let n = 0; n < 3; n += 1) await note(`Note ${n}`);
    const lines = ["# a", "#".repeat(100_000), "- [", "- [x]("].map(
      (line) => `${line}${" ".repeat(100_000)}b`,
    );
    await begun(`${lines.join("\n")}${"\n".repeat(100_000)}x`);
    expect((await call("GET", "/postmortem/")).missing_sections).toHaveLength(6);
    expect((await draft()).text).toContain("Note 2");
  });

  test("that cites an entry, or has remarks below one, keeps both where they are", async () => {
    const first = await note("First note");
    const drafted = await draft();
    const cited = `/app/incidents/${id}?at=${first.id}#event-${first.id}`;
    const edited = drafted.text
      .replace(" First note", " First note\nwhich was wrong\n\n  because of a typo")
      .replace(
        "## What went well",
        `## What went well\n\nThe [first note](${cited}) was read\nby everybody.`,
      );
    await edit(drafted, edited);
    await note("Second note");
    const { text } = await draft();
    expect(text).toMatch(/First note\nwhich was wrong\n\n {2}because of a typo\n- \[.*Second note\n/);
    expect(text).toContain("was read\nby everybody.");
  });

  test("whose first text could not be written is drafted whole the next time", async () => {
    const made = await begun();
    const { document_id, text } = await draft({ entries: [], sections: false });
    expect(document_id).toBe(made);
    expect(text).toContain("| Priority |");
  });

  test("does not get the tasks that were found in its own text", async () => {
    const { document_id } = await draft();
    const wanted = { incident_id: id, assignees: [] };
    for (const more of [{ description: "From the text", document_id }, { description: "From the incident" }])
      expect((await given.member.call("POST", "/tasks/", { ...wanted, ...more })).http).toBe(201);
    const { new_tasks } = await call("GET", "/postmortem/");
    expect(new_tasks.map(({ description }: { description: string }) => description)).toEqual([
      "From the incident",
    ]);
    expect((await draft()).text).not.toMatch(/^- \[From the text\]/m);
  });

  test("of an incident with the longest title is drafted and edited", async () => {
    const { id: long } = await given.reported("a".repeat(500));
    path = `/incidents/${long}`;
    const drafted = await draft();
    await edit(drafted, "# Mine");
    await note("Late note");
    expect((await draft()).text).toStartWith("# Mine\n");
  });

  test("gets only the entries that are named", async () => {
    await draft();
    const [one, other] = [await note("Wanted"), await note("Unwanted")];
    const { text, new_entries } = await draft({ entries: [one.id] });
    expect(text).toContain("Wanted");
    expect(text).not.toContain("Unwanted");
    expect(new_entries.map(({ event_id }: { event_id: number }) => event_id)).toEqual([other.id]);
  });

  test("is one document, however many draft it at once, and nobody's text is lost", async () => {
    const answers = await Promise.all(
      [1, 2, 3, 4].map(() => given.member.call("POST", `${path}/postmortem/`, {})),
    );
    expect(answers.map(({ http }) => http).filter((http) => http !== 200 && http !== 409)).toEqual([]);
    expect(answers.some(({ http }) => http === 200)).toBe(true);
    const { body } = await given.member.call("GET", `/documents/?incident_id=${id}&resource_type=review`);
    expect(body.items).toHaveLength(1);
    const told = (await call("GET", "/events?kind=postmortem.drafted")).items;
    expect(told).toHaveLength(1);
  });

  test("leaves out what was withdrawn, and messages to one person", async () => {
    const gone = await note("A secret");
    await call("POST", `/events/${gone.id}/withdraw`, { version: 1 });
    const { items } = await call("GET", "/participants/");
    await call("POST", "/messages/", { text: "psst", recipient_id: items[0].individual.id });
    const { text } = await draft();
    expect(text).not.toMatch(/secret|psst|Withdrawn/);
  });

  describe("that cites an entry", () => {
    const outdated = async () =>
      (await call("GET", "/postmortem/")).outdated_entries.map((one: Record<string, unknown>) => [
        one.event_id,
        one.change,
        one.who,
      ]);
    const textOf = async (document: number) =>
      (await given.member.call("GET", `/documents/${document}/content`)).body;

    const redact = async (event: number): Promise<number[]> => {
      const { body } = await given.admin.call("POST", `${path}/events/${event}/redact`, { reason: "Secret" });
      return body.cited_by.map((one: { id: number }) => one.id);
    };

    test("withdrawn or redacted later names it until the link is removed, without its words", async () => {
      const gone = await note("The password is hunter2");
      const drafted = await draft();
      expect(await outdated()).toEqual([]);
      await call("POST", `/events/${gone.id}/withdraw`, { version: 1 });
      const { outdated_entries } = await call("GET", "/postmortem/");
      const at = given.server.clock.now().toISOString();
      expect(outdated_entries).toEqual([{ event_id: gone.id, change: "withdrawn", who: "carol", at }]);
      await redact(gone.id);
      expect(await outdated()).toEqual([[gone.id, "redacted", "root@example.com"]]);
      const link = `?at=${gone.id}#event-${gone.id}`;
      const inside = `Somebody [wrote](/app/incidents/${id}${link}) a secret.`;
      await edit(drafted, drafted.text.replace(/^- .*hunter2$/m, inside));
      expect(await outdated()).toHaveLength(1);
      await edit(await call("GET", "/postmortem/"), drafted.text.replace(link, ""));
      expect(await outdated()).toEqual([]);
    });

    test("corrected before it was drafted does not name it, whatever is added to its line", async () => {
      const [early, late] = [await note("It was the dsk"), await note("It was the fan")];
      await call("PUT", `/events/${early.id}`, { version: 1, description: "It was the disk" });
      given.server.clock.advance(60);
      const drafted = await draft();
      const remark = (text: string) => text.replace(/the (disk|fan)$/gm, "the $1, as we know now");
      await edit(drafted, remark(drafted.text));
      expect(await outdated()).toEqual([]);
      given.server.clock.advance(60);
      await call("PUT", `/events/${late.id}`, { version: 1, description: "It was not the fan" });
      const named = [[late.id, "corrected", "carol"]];
      expect(await outdated()).toEqual(named);
      // What is added later is compared with the time of that, and the others are not.
      const last = await note("It was the dsk");
      await call("PUT", `/events/${last.id}`, { version: 1, description: "And the disk" });
      given.server.clock.advance(60);
      const added = await draft();
      await edit(added, remark(added.text));
      expect(await outdated()).toEqual(named);
    });

    test("is compared with its last drafting, if it was drafted", async () => {
      const wrong = await note("It was the dsk");
      const first = await draft();
      const pasted = await note("It was the fn");
      const link = `(/app/incidents/${id}?at=${pasted.id}#event-${pasted.id})`;
      await edit(first, first.text.replace("## What went well", `It was the fn [here]${link}.\n\n$&`));
      given.server.clock.advance(60);
      await call("PUT", `/events/${wrong.id}`, { version: 1, description: "It was the disk" });
      await call("PUT", `/events/${pasted.id}`, { version: 1, description: "It was the fan" });
      given.server.clock.advance(60);
      await note("Last note");
      // A newer entry was drafted since, and these two were not.
      const { new_entries } = await call("GET", "/postmortem/");
      const drafted = await draft({ entries: [new_entries.at(-1).event_id] });
      const named = [wrong, pasted].map((one) => [one.id, "corrected", "carol"]);
      expect(await outdated()).toEqual(named);
      await edit(drafted, "");
      const anew = await draft();
      await edit(anew, anew.text.replace("It was the disk", "$&, we know"));
      expect(await outdated()).toEqual([]);
    });

    test("corrected later names it wherever a link to it has other words", async () => {
      const wrong = await note("It was the dsk");
      const drafted = await draft();
      given.server.clock.advance(60);
      await call("PUT", `/events/${wrong.id}`, { version: 1, description: "It was the disk" });
      const named = [[wrong.id, "corrected", "carol"]];
      const link = `(/app/incidents/${id}?at=${wrong.id}#event-${wrong.id})`;
      let version = drafted.version;
      const write = async (text: string) => {
        await edit({ document_id: drafted.document_id, version }, text);
        ({ version } = await call("GET", "/postmortem/"));
        return outdated();
      };
      expect(await write(`Somebody [thought]${link} that it was the dsk.`)).toEqual(named);
      expect(await write(`1. [12:00]${link} It was the dsk`)).toEqual(named);
      expect(await write(`- [12:00]${link} It was the disk`)).toEqual([]);
      expect(await write(`- [12:00]${link} It was the disk\n\nThe dsk [again]${link}.`)).toEqual(named);
      expect(await write("It was the disk")).toEqual([]);
    });

    test("is named when that is redacted, also if only an earlier version cited it", async () => {
      const [one, other] = [await note("One"), await note("Other")];
      const drafted = await draft();
      expect(await redact(one.id)).toEqual([drafted.document_id]);
      await edit(drafted, drafted.text.replaceAll(/^- .*/gm, ""));
      expect(await redact(other.id)).toEqual([drafted.document_id]);
      const uncited = await note("Uncited");
      expect(await redact(uncited.id)).toEqual([]);
    });

    test("redacted while it is drafted is not written into it", async () => {
      const { db } = given.server;
      /** The draft has been read, and is written after `change`. */
      const draftedAfter = async (change: () => Promise<unknown>) => {
        const [, drafting] = await inTheWay<unknown>(
          db,
          (tx) => tx.select().from(incident).where(eq(incident.id, id)).for("update"),
          change,
          () => given.member.call("POST", `${path}/postmortem/`, {}),
        );
        expect(drafting).toMatchObject({
          value: {
            http: 409,
            body: { detail: "The incident's texts were changed while it was drafted: draft it again" },
          },
        });
      };
      const redacted = (event: number) => async () => expect(await redact(event)).toEqual([]);
      await draftedAfter(redacted((await note("The password is hunter2")).id));
      await edited({ description: "The password is hunter2" });
      await draftedAfter(() => edited({ description: "Everything is down" }));
      const { text } = await draft();
      expect(text).not.toContain("hunter2");
      await draftedAfter(redacted((await note("The password is hunter2")).id));
      expect((await draft()).text).toBe(text);
    });

    test("is named when an earlier description is redacted, if a version has its words", async () => {
      const words = "  - The *password* of db_2 | is\n    hunter2 & co.";
      await edited({ description: words });
      const drafted = await draft();
      const other = { description: "", weblink: null, incident_id: id, resource_type: "reference" };
      const write = async (name: string, text: string) => {
        const { body } = await given.member.call("POST", "/documents/", { ...other, name });
        await edit({ document_id: body.id, version: null as unknown as string }, text);
        return body.id;
      };
      const typed = await write("Typed", `> ${words.trim()}`.replace("\n", "\r\n"));
      // As a template has it.
      const filled = await write(
        "Filled",
        "\\- The \\*password\\* of db\\_2 \\| is\n    hunter2 \\& co.\n\n# More",
      );
      await edited({ description: "Everything is down" });
      const events = await call("GET", "/events?kind=incident.updated&sort=id");
      const [, last] = events.items;
      const link = `/app/incidents/${id}?at=${last.id}#event-${last.id}`;
      await write("Another", `[Changed](${link}): The password of db-2`);
      await edit(drafted, "# Without its words");
      expect(await redact(last.id)).toEqual([drafted.document_id, typed, filled]);
    });

    test("corrected later names it until its line has the words as they are now", async () => {
      const wrong = await note("The disk of *db-2*\nand Bob's mistake");
      const early = await note("Noted");
      await call("PUT", `/events/${early.id}`, { version: 1, description: "Noted early" });
      const { document_id } = await draft();
      expect(await outdated()).toEqual([]);
      // The words as they are now are a part of what the line has.
      await call("PUT", `/events/${wrong.id}`, { version: 1, description: "The disk of *db-2*" });
      expect(await outdated()).toEqual([[wrong.id, "corrected", "carol"]]);
      const { text, version } = await textOf(document_id);
      await edit({ document_id, version }, text.replace(/ {2}\n {2}and Bob's mistake/, ""));
      expect(await outdated()).toEqual([]);
    });
  });

  test("shows the gaps in the timeline until the incident was stable", async () => {
    given.server.clock.advance(35 * 60);
    await note("Late");
    given.server.clock.advance(10 * 60);
    await close("Stable");
    given.server.clock.advance(4 * 60);
    const { gaps } = await call("GET", "/postmortem/");
    expect(
      gaps.map(({ from, to }: Record<string, string>) => (Date.parse(to!) - Date.parse(from!)) / 60_000),
    ).toEqual([35]);
  });

  test("is due when an incident of such a type is closed, until it is drafted or linked", async () => {
    const due = async (by = given.member) =>
      (await by.call("GET", "/incidents/?postmortem_due=true")).body.items.map(
        (one: { id: number }) => one.id,
      );
    const type = eq(incidentType.id, given.ids.incidentTypeId);
    await close();
    expect(await due()).not.toContain(id);
    await given.server.db.update(incidentType).set({ postmortem: true }).where(type);
    expect(await due()).toContain(id);
    const stranger = await personOf(given.server, "stranger@example.com");
    expect(await due(stranger)).toContain(id);
    await given.server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, id));
    expect(await due(stranger)).not.toContain(id);
    const { id: other } = await given.reported("Elsewhere");
    const elsewhere = {
      name: "Ours",
      description: "",
      resource_type: "review",
      weblink: "https://wiki.example.com/",
    };
    await draft();
    expect(await due()).toEqual([]);
    path = `/incidents/${other}`;
    await close();
    expect(await due()).toEqual([other]);
    await given.member.call("POST", "/documents/", { ...elsewhere, incident_id: other });
    expect(await due()).toEqual([]);
    await given.server.db.update(incidentType).set({ postmortem: false }).where(type);
  });

  test("of a Restricted incident is like one that does not exist", async () => {
    await draft();
    await given.server.db.update(incident).set({ visibility: "Restricted" }).where(eq(incident.id, id));
    const stranger = await personOf(given.server, "stranger@example.com");
    for (const method of ["GET", "POST"]) {
      const body = method === "GET" ? undefined : {};
      const hidden = await stranger.call(method, `${path}/postmortem/`, body);
      const missing = await stranger.call(method, "/incidents/987654/postmortem/", body);
      expect([hidden.http, hidden.body.detail]).toEqual([404, missing.body.detail]);
    }
  });
});
