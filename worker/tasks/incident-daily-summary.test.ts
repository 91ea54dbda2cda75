import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import type { Listed } from "../../core/incident/summary/listed.ts";
import { summaryMessage } from "../../core/incident/summary/message.ts";
import { rewind } from "../../core/schedule/operate.ts";
import {
  conversation,
  delivery,
  incident,
  individual,
  participant,
  run as taskRun,
} from "../../drizzle/schema/index.ts";
import { fakeConversation } from "../../plugins/fake/fakes.ts";
import { pluginsOf } from "../../plugins/fake/plugins.ts";
import {
  addParticipant,
  at,
  insertSecond,
  type Outbox,
  startOutbox,
} from "../../tests/support/domain/delivery.ts";
import { scheduleOf } from "../../tests/support/domain/schedule.ts";
import { incidentDailySummary } from "./incident-daily-summary.ts";

const plugins = pluginsOf(fakeConversation({}, { slug: "channel" }));
const hoursAgo = (hours: number) => new Date(at.getTime() - hours * 3_600_000);

describe("the message", () => {
  const window = { since: hoursAgo(24), until: at };
  const words = { date: "2026-12-01", window, timezone: "UTC", publicUrl: "https://svc.example.com" };
  const one: Listed = {
    id: 7,
    name: "INC-7",
    title: "Disk full",
    status: "Active",
    priority: "High",
    reportedAt: hoursAgo(30),
    commander: "Alice",
    lastReportAt: hoursAgo(3),
  };

  test("lists active and ended incidents", () => {
    const other: Listed = {
      ...one,
      id: 8,
      name: "INC-8",
      status: "Closed",
      commander: null,
      lastReportAt: null,
    };
    expect(summaryMessage({ incidents: [one, other], active: 1, ended: 3 }, words)).toEqual({
      subject: "Incidents on 2026-12-01: 1 active, 3 stable or closed in the last 24 hours",
      text: `Active: 1

- INC-7: Disk full (priority High, for 1 day 6 hours, commander Alice, last report 3 hours ago)
  https://svc.example.com/incidents/7

Stable or closed in the last 24 hours: 3

- INC-8: Disk full (Closed, no commander, no status report yet)
  https://svc.example.com/incidents/8
- and 2 more`,
    });
  });

  test("names the start of the period if it is not 24 hours", () => {
    const { subject, text } = summaryMessage(
      { incidents: [], active: 0, ended: 0 },
      { ...words, window: { since: hoursAgo(25), until: at }, timezone: "Europe/Berlin" },
    );
    expect(subject).toBe(
      "Incidents on 2026-12-01: 0 active, 0 stable or closed since 2026-11-30 12:00 Europe/Berlin",
    );
    expect(text).toBe("Active: none.\n\nStable or closed since 2026-11-30 12:00 Europe/Berlin: none.");
  });

  test("says so if there are no incidents", () => {
    expect(summaryMessage({ incidents: [], active: 0, ended: 0 }, words)).toEqual({
      subject: "Incidents on 2026-12-01: 0 active, 0 stable or closed in the last 24 hours",
      text: "Active: none.\n\nStable or closed in the last 24 hours: none.",
    });
  });
});

describe("the task", () => {
  let outbox: Outbox;
  beforeAll(async () => {
    outbox = await startOutbox();
  });
  afterAll(() => outbox[Symbol.asyncDispose]());
  beforeEach(async () => {
    const { db, ids } = outbox;
    await outbox.empty();
    await db.delete(incident).where(sql`id <> ${ids.incidentId}`);
    await db.update(incident).set({ status: "Active", visibility: "Open", stableAt: null });
    await db.update(conversation).set({ archivedAt: null });
  });
  const run = (overrides = {}) => outbox.run(incidentDailySummary, plugins, overrides);
  const of = async (individualId: number) =>
    (await outbox.all()).filter((row) => row.individualId === individualId);

  test("sends one message a day to each participant", async () => {
    const { alice, bob, incidentId } = outbox.ids;
    expect(await run()).toEqual({ result: { done: 2, skipped: 0, failed: 0 }, faults: [] });
    expect(await outbox.all()).toMatchObject([
      {
        individualId: alice,
        incidentId,
        key: `incident-daily-summary/2026-12-01/individual-${alice}/channel`,
      },
      { individualId: bob, incidentId },
    ]);
    await Promise.all([run(), run()]);
    // A run by hand counts as the day's summary.
    const later = new Date(at.getTime() + 6 * 3_600_000);
    expect((await run({ slot: later })).result).toEqual({ done: 0, skipped: 2, failed: 0 });
    expect(await outbox.all()).toHaveLength(2);
    const slot = new Date("2026-12-02T12:00:00.000Z");
    await run({ slot });
    expect(await outbox.all()).toHaveLength(4);
  });

  test("uses the day of the schedule's time zone", async () => {
    const config = { ...outbox.context(plugins).config, timezone: "Pacific/Auckland" };
    await run({ config });
    expect((await outbox.all())[0]?.key).toContain("/2026-12-02/");
  });

  test("lists what ended in the last 24 hours, and all Active incidents", async () => {
    const old = await insertSecond(outbox, { title: "Old", reportedAt: hoursAgo(1000) });
    for (const [title, hours] of [
      ["Now stable", 23],
      ["Long stable", 24],
      ["To come", -1],
    ] as const)
      await insertSecond(outbox, { title, status: "Stable", stableAt: hoursAgo(hours) });
    const closed = { status: "Closed", stableAt: hoursAgo(90), closedAt: hoursAgo(1) } as const;
    await insertSecond(outbox, { title: "Now closed", ...closed });
    await run();
    const [{ subject, text } = { subject: "", text: "" }] = await of(outbox.ids.alice);
    expect(subject).toContain("2 active, 2 stable or closed");
    for (const there of ["Disk full", "Old", "Now stable", "Now closed"]) expect(text).toContain(there);
    for (const not of ["Long stable", "To come"]) expect(text).not.toContain(not);
    expect(text).toContain(`https://svc.example.com/incidents/${old}`);
  });

  test("resends a summary that was sent while the clock was a day ahead, once, under other keys", async () => {
    const { db, clock } = outbox;
    const secret = await insertSecond(outbox, { visibility: "Restricted" });
    await addParticipant(outbox, secret, outbox.ids.alice);
    const tomorrow = new Date(at.getTime() + 86_400_000);
    clock.advance(86_400);
    expect((await run({ slot: tomorrow })).result.done).toBe(3);
    clock.advance(-86_400);
    const schedule = { ...scheduleOf(db, clock, "a"), clock };
    await rewind(schedule);
    // Today's has a different date; tomorrow's is sent again.
    expect((await run()).result.done).toBe(3);
    clock.advance(86_400);
    expect((await run({ slot: tomorrow })).result.done).toBe(3);
    expect((await run({ slot: tomorrow })).result.done).toBe(0);
    const rows = await outbox.all();
    const [{ alice }, epoch] = [outbox.ids, at.getTime()];
    expect(
      rows
        .filter((row) => row.individualId === alice)
        .map(({ key }) => key)
        .toSorted(),
    ).toEqual(
      [
        `2026-12-01-incident-${secret}`,
        "2026-12-01",
        `2026-12-02~${epoch}-incident-${secret}`,
        `2026-12-02~${epoch}`,
        `2026-12-02-again-${epoch}-incident-${secret}`,
        `2026-12-02-again-${epoch}`,
      ]
        .map((name) => `incident-daily-summary/${name}/individual-${alice}/channel`)
        .toSorted(),
    );
    await db.delete(participant).where(eq(participant.incidentId, secret));
    clock.advance(-86_400);
  });

  test("covers everything that ended since the last summary, so a failed one is made up for by the next", async () => {
    const { db } = outbox;
    const ended = { task: "incident-daily-summary", trigger: "schedule", owner: "a", startedAt: at } as const;
    await db.insert(taskRun).values([
      { ...ended, slot: hoursAgo(48), state: "Done", finishedAt: at },
      { ...ended, slot: hoursAgo(24), state: "Failed", error: "x", finishedAt: at },
    ]);
    await insertSecond(outbox, { title: "Of the day that failed", status: "Stable", stableAt: hoursAgo(30) });
    await insertSecond(outbox, { title: "Told already", status: "Stable", stableAt: hoursAgo(48) });
    await run();
    await db.delete(taskRun);
    const [{ subject, text } = { subject: "", text: "" }] = await of(outbox.ids.alice);
    expect(subject).toContain("1 stable or closed since 2026-11-29 12:00 UTC");
    expect(text).toContain("Of the day that failed");
    expect(text).not.toContain("Told already");
  });

  test("mentions a Restricted incident to its participants only, through its own conversation", async () => {
    const { alice, bob } = outbox.ids;
    const secret = await insertSecond(outbox, { title: "Secret leak", visibility: "Restricted" });
    await addParticipant(outbox, secret, alice);
    const left = await addParticipant(outbox, secret, bob);
    await outbox.db.update(participant).set({ leftAt: at }).where(eq(participant.id, left));
    expect((await run()).result.done).toBe(3);
    const rows = await outbox.all();
    const telling = rows.filter(({ subject, text }) => `${subject} ${text}`.includes("Secret leak"));
    expect(telling).toMatchObject([{ individualId: alice, incidentId: secret, about: [secret] }]);
    for (const { about, incidentId } of rows) if (incidentId !== secret) expect(about).not.toContain(secret);
    for (const { subject } of rows) expect(subject).not.toContain("3 active");
  });

  test("an unreachable participant is a fault, and does not affect the others", async () => {
    const none = await insertSecond(outbox, {}, []);
    const [carol] = await outbox.db
      .insert(individual)
      .values({ name: "carol", email: "carol@example.com", createdAt: at, updatedAt: at })
      .returning();
    await addParticipant(outbox, none, carol!.id);
    const { result, faults } = await run();
    expect(result).toEqual({ done: 2, skipped: 0, failed: 1 });
    expect(faults).toEqual([
      `individual ${carol!.id}: None of their incidents has an open conversation to send the summary to`,
    ]);
    await outbox.db.delete(participant).where(eq(participant.incidentId, none));
  });

  test("never mentions a Restricted incident without a conversation; if Active, that is a fault", async () => {
    const { alice } = outbox.ids;
    const secret = await insertSecond(outbox, { visibility: "Restricted" }, []);
    await addParticipant(outbox, secret, alice);
    const { result, faults } = await run();
    expect(result).toEqual({ done: 2, skipped: 0, failed: 1 });
    expect(faults).toEqual([
      `individual ${alice}, INC-${secret}: This Restricted incident has no open conversation to send its summary to`,
    ]);
    await outbox.db.update(incident).set({ status: "Stable", stableAt: at }).where(eq(incident.id, secret));
    expect((await run()).faults).toEqual([]);
    await outbox.db.delete(participant).where(eq(participant.incidentId, secret));
  });

  test("sends nothing to participants of ended incidents whose conversations are all archived", async () => {
    await outbox.db.update(incident).set({ status: "Stable", stableAt: at });
    await outbox.db.update(conversation).set({ archivedAt: at });
    expect((await run()).result).toEqual({ done: 0, skipped: 2, failed: 0 });
  });

  test("a delivery that cannot be written is left out; the others are created", async () => {
    const { alice } = outbox.ids;
    await outbox.db.execute(
      sql.raw(`
      create function refuse() returns trigger language plpgsql as
        $$ begin if new.individual_id = ${alice} then raise exception 'no'; end if; return new; end $$;
      create trigger refuse before insert on delivery for each row execute function refuse()`),
    );
    const { result, faults } = await run();
    await outbox.db.execute(sql`drop function refuse cascade`);
    expect(result).toEqual({ done: 1, skipped: 0, failed: 1 });
    expect(faults).toEqual([`individual ${alice}: Unexpected error; see the worker's log`]);
    expect(await outbox.db.$count(delivery)).toBe(1);
  });
});
