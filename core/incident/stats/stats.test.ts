import { beforeAll, describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import fc from "fast-check";
import * as schema from "../../../drizzle/schema/index.ts";
import { useDatabase } from "../../../tests/support/database/database.ts";
import { signedIn } from "../../../tests/support/domain/actor.ts";
import { effort } from "../../../tests/support/effort.ts";
import {
  csvOf,
  type Figures,
  type Grouping,
  groupings,
  noService,
  spanText,
  timeFigures,
} from "./figures.ts";
import { readStats } from "./stats.ts";

const client = useDatabase(2);
const now = new Date("2026-11-30T12:00:00.000Z");
const read = (actor = signedIn("carol"), query = {}) =>
  readStats({ db: client.db, clock: { now: () => now } }, actor, query);

/** Times are in minutes after the report. */
interface Case {
  at: string;
  type: "Outage" | "Leak";
  priority: "High" | "Low";
  services?: ("Web" | "Database")[];
  /** When somebody took the role of commander. */
  commanders?: number[];
  reports?: number[];
  stable?: number;
  close?: number;
  impact?: [number, number | null];
  cost?: number;
  openTasks?: number;
  restricted?: boolean;
  /** Of a Restricted one: who takes part in it, and who has left. */
  members?: string[];
  left?: string[];
}

const people = ["carol", "dave", "erin"];
const ids: Record<string, number> = {};
beforeAll(async () => {
  const stamps = { createdAt: now, updatedAt: now };
  const add = async (table: typeof schema.individual, values: object[]) => {
    for (const one of await client.db
      .insert(table)
      .values(values as never)
      .returning())
      ids[one.name] = one.id;
  };
  const names = (...all: string[]) => all.map((name) => ({ name, ...stamps }));
  await add(
    schema.individual,
    names(...people).map((one) => ({ ...one, email: `${one.name}@example.com` })),
  );
  await add(schema.incidentType as never, names("Outage", "Leak"));
  await add(schema.service as never, names("Web", "Database"));
  const [low, high] = names("Low", "High");
  await add(schema.incidentPriority as never, [
    { ...low, rank: 2, reminderHours: 1 },
    { ...high, rank: 1, reminderHours: 1 },
  ]);
});

/** @returns the ids */
async function insert(all: readonly Case[]): Promise<number[]> {
  const made: number[] = [];
  const { db } = client;
  await db.execute(sql`truncate ${schema.incident} cascade`);
  for (const one of all) {
    const after = (minutes: number) => new Date(Date.parse(one.at) + Math.round(minutes * 60_000));
    const orNull = (minutes: number | null | undefined) => (minutes == null ? null : after(minutes));
    const [row] = await db
      .insert(schema.incident)
      .values({
        title: "x",
        description: "x",
        incidentTypeId: ids[one.type]!,
        incidentPriorityId: ids[one.priority]!,
        visibility: one.restricted ? "Restricted" : "Open",
        status: one.close !== undefined ? "Closed" : one.stable !== undefined ? "Stable" : "Active",
        reportedAt: after(0),
        stableAt: orNull(one.stable),
        closedAt: orNull(one.close),
        impactStartedAt: orNull(one.impact?.[0]),
        impactEndedAt: orNull(one.impact?.[1]),
        cost: one.cost ?? 0,
        createdAt: after(0),
        updatedAt: after(0),
      })
      .returning();
    const incidentId = row!.id;
    made.push(incidentId);
    const join = async (name: string, leftAt: Date | null) => {
      const values = { incidentId, individualId: ids[name]!, joinedAt: after(0), leftAt };
      return (await db.insert(schema.participant).values(values).returning())[0]!.id;
    };
    for (const name of one.members ?? []) await join(name, null);
    for (const name of one.left ?? []) await join(name, after(1));
    const participantId = await join("erin", null);
    const role = { participantId, incidentId, renouncedAt: after(1000) };
    await db.insert(schema.participantRole).values([
      { ...role, role: "scribe", assumedAt: after(0) },
      ...(one.commanders ?? []).map((at) => ({
        ...role,
        role: "commander" as const,
        assumedAt: after(at),
      })),
    ]);
    for (const at of one.reports ?? [])
      await db.insert(schema.statusReport).values({
        ...{ incidentId, authorId: ids.erin!, conditions: "x", actions: "x", needs: "x" },
        createdAt: after(at),
      });
    const services = (one.services ?? []).map((name) => ({ incidentId, serviceId: ids[name]! }));
    if (services.length > 0) await db.insert(schema.incidentService).values(services);
    const task = { incidentId, description: "x", resolveBy: now, createdAt: now, updatedAt: now };
    const open = Array.from({ length: one.openTasks ?? 0 }, () => task);
    await db
      .insert(schema.task)
      .values([...open, { ...task, status: "Resolved", resolvedAt: now }, { ...task, status: "Cancelled" }]);
  }
  return made;
}

describe("of a set that was counted by hand", () => {
  const cases: Case[] = [
    // Before the range.
    { at: "2026-11-01T23:59:59.999Z", type: "Outage", priority: "High", cost: 9999 },
    // The week of 2 November.
    {
      ...{ at: "2026-11-02T00:00:00Z", type: "Outage", priority: "High", services: ["Web"], commanders: [5] },
      ...{ reports: [10], stable: 60, close: 120, impact: [0, 90], cost: 100, openTasks: 2 },
    },
    {
      ...{ at: "2026-11-04T10:00:00Z", type: "Outage", priority: "Low", services: ["Web", "Database"] },
      ...{ commanders: [15], reports: [30], stable: 100, close: 200, cost: 200, openTasks: 1 },
    },
    // Without a commander, Active, so that its tasks do not count.
    { at: "2026-11-08T23:59:59.999Z", type: "Leak", priority: "High", cost: 50, openTasks: 1 },
    // The week of 9 November. A commander who handed over, two reports, and Stable.
    {
      ...{ at: "2026-11-09T00:00:00Z", type: "Outage", priority: "High", services: ["Database"] },
      ...{ commanders: [25, 40], reports: [50, 20], stable: 80, cost: 10, openTasks: 1 },
    },
    // Restricted, with dave.
    {
      ...{ at: "2026-11-10T08:00:00Z", type: "Leak", priority: "Low", services: ["Web"], commanders: [35] },
      ...{ reports: [40], stable: 120, close: 240, impact: [0, 30], cost: 1000, openTasks: 1 },
      ...{ restricted: true, members: ["dave"] },
    },
    // Reopened, so it is not Stable; its impact has not ended.
    {
      ...{ at: "2026-11-12T08:00:00Z", type: "Outage", priority: "High", commanders: [45], reports: [60] },
      ...{ impact: [0, null], cost: 20 },
    },
    // The week of 23 November. Its impact began before the report.
    {
      ...{ at: "2026-11-23T00:00:00Z", type: "Outage", priority: "Low", services: ["Database"] },
      ...{ commanders: [0], stable: 20, close: 40, impact: [-60, 20], cost: 30 },
    },
    // Reopened, and closed again.
    {
      ...{ at: "2026-11-24T00:00:00Z", type: "Leak", priority: "High", commanders: [1], reports: [5] },
      ...{ stable: 300, close: 600, impact: [0, 300], cost: 40 },
    },
    // Imported: somebody commanded it, and reported on it, before the time of its report.
    { at: "2026-11-25T00:00:00Z", type: "Leak", priority: "Low", commanders: [-30, 50], reports: [-10] },
    // Restricted; carol has left.
    {
      ...{ at: "2026-11-26T00:00:00Z", type: "Outage", priority: "High", commanders: [7], cost: 5000 },
      ...{ restricted: true, left: ["carol"] },
    },
    {
      ...{ at: "2026-11-27T00:00:00Z", type: "Outage", priority: "High", services: ["Web"] },
      ...{ commanders: [10], stable: 10, close: 30, cost: 60 },
    },
    {
      ...{ at: "2026-11-29T23:59:59Z", type: "Outage", priority: "High", services: ["Database", "Web"] },
      ...{ commanders: [20], reports: [15], stable: 40, close: 50, cost: 70 },
    },
    // After the range.
    { at: "2026-11-30T00:00:00Z", type: "Outage", priority: "High", cost: 9999 },
  ];
  const range = { since: new Date("2026-11-02T00:00:00Z"), until: new Date("2026-11-30T00:00:00Z") };
  beforeAll(async () => {
    const made = await insert(cases);
    // A task that has gone from its document is none.
    const stamps = { createdAt: now, updatedAt: now };
    const incidentId = made[1]!;
    const [document] = await client.db
      .insert(schema.document)
      .values({ name: "x", incidentId, resourceType: "incident", ...stamps })
      .returning();
    const gone = { documentId: document!.id, externalId: "1", deletedAt: now };
    await client.db
      .insert(schema.task)
      .values({ incidentId, description: "x", resolveBy: now, ...gone, ...stamps });
  });
  const inShort = async (by: Grouping) =>
    (await read(signedIn("carol"), { ...range, by })).groups.map((one) => [
      one.name,
      one.incidents,
      one.commander.p50,
      one.commander.p90,
      one.cost,
      one.tasks,
    ]);

  test("all of them", async () => {
    expect(await read(signedIn("carol"), { ...range, by: "type" })).toEqual({
      ...range,
      by: "type",
      restricted: "own",
      total: {
        incidents: 10,
        commander: { incidents: 9, p50: 15 * 60, p90: 46 * 60 },
        report: { incidents: 6, p50: 17.5 * 60, p90: 45 * 60 },
        stable: { incidents: 7, p50: 60 * 60, p90: 180 * 60 },
        close: { incidents: 6, p50: 85 * 60, p90: 400 * 60 },
        impact: { incidents: 3, p50: 90 * 60, p90: 258 * 60 },
        cost: 580,
        tasks: 3,
      },
      weeks: [
        { week: "2026-11-02", incidents: 3 },
        { week: "2026-11-09", incidents: 2 },
        { week: "2026-11-16", incidents: 0 },
        { week: "2026-11-23", incidents: 5 },
      ],
      groups: [
        expect.objectContaining({ id: ids.Outage, name: "Outage", incidents: 7, cost: 490, tasks: 3 }),
        {
          id: ids.Leak,
          name: "Leak",
          incidents: 3,
          commander: { incidents: 2, p50: 25.5 * 60, p90: 45.1 * 60 },
          report: { incidents: 1, p50: 5 * 60, p90: 5 * 60 },
          stable: { incidents: 1, p50: 300 * 60, p90: 300 * 60 },
          close: { incidents: 1, p50: 600 * 60, p90: 600 * 60 },
          impact: { incidents: 1, p50: 300 * 60, p90: 300 * 60 },
          cost: 90,
          tasks: 0,
        },
      ],
    });
  });

  test("by type, by priority in order of rank, by service, and by week", async () => {
    expect(await inShort("type")).toEqual([
      ["Outage", 7, 900, 1980, 490, 3],
      ["Leak", 3, 1530, 2706, 90, 0],
    ]);
    expect(await inShort("priority")).toEqual([
      ["High", 7, 900, 2100, 350, 2],
      ["Low", 3, 900, 2580, 230, 1],
    ]);
    expect(await inShort("service")).toEqual([
      [noService, 4, 2700, 2940, 110, 0],
      ["Database", 4, 1050, 1410, 310, 1],
      ["Web", 4, 750, 1110, 430, 3],
    ]);
    expect(await inShort("week")).toEqual([
      ["2026-11-02", 2 + 1, 600, 840, 350, 3],
      ["2026-11-09", 2, 2100, 2580, 30, 0],
      ["2026-11-16", 0, null, null, 0, 0],
      ["2026-11-23", 5, 600, 2280, 200, 0],
    ]);
  });

  test.each([
    ["dave", false, "own", 11, 1580, 4],
    ["erin", false, "own", 12, 6580, 4],
    ["root", true, "all", 12, 6580, 4],
  ])("a Restricted incident counts for those who may see it: %s", async (name, admin, ...expected) => {
    const { restricted, total } = await read(signedIn(name, { admin }), range);
    expect<unknown[]>([restricted, total.incidents, total.cost, total.tasks]).toEqual(expected);
  });

  test("of twelve weeks by default, as of now or as of a day", async () => {
    const { since, until, weeks } = await read();
    expect([since, until]).toEqual([new Date("2026-09-14T00:00:00Z"), now]);
    expect([weeks.length, weeks.at(-1)]).toEqual([12, { week: "2026-11-30", incidents: 1 }]);
    const earlier = await read(undefined, { until: range.until });
    expect([earlier.since, earlier.weeks.length]).toEqual([new Date("2026-09-07T00:00:00Z"), 12]);
  });
});

describe("refuses", () => {
  test.each([
    ["until", { since: now, until: now }, "end after it begins"],
    ["until", { since: new Date(now.getTime() + 1) }, "end after it begins"],
    ["since", { since: new Date("2021-11-01T00:00:00Z") }, "longer than 5 years"],
  ])("%s of a range: %p", async (field, query, detail) => {
    expect(await read(undefined, query).catch((error) => error)).toMatchObject({
      field,
      detail: expect.stringContaining(detail),
    });
  });
});

test("agrees with the plain computation, for any incidents", async () => {
  const [start, end] = [Date.parse("2026-10-01T00:00:00Z"), Date.parse("2026-11-05T12:34:56Z")];
  const range = { since: new Date(start), until: new Date(end) };
  /** To the millisecond. */
  const minutes = fc.integer({ min: -600_000, max: 90_000_000 }).map((ms) => ms / 60_000);
  const later = minutes.map(Math.abs);
  const some = <T>(one: fc.Arbitrary<T>) => fc.option(one, { nil: undefined });
  const cases = fc
    .record({
      at: fc
        .integer({ min: start - 86_400_000, max: end + 86_400_000 })
        .map((time) => new Date(time).toISOString()),
      type: fc.constantFrom("Outage" as const, "Leak" as const),
      priority: fc.constantFrom("High" as const, "Low" as const),
      services: fc.subarray(["Web", "Database"] as ("Web" | "Database")[]),
      commanders: fc.array(minutes, { maxLength: 3 }),
      reports: fc.array(minutes, { maxLength: 3 }),
      stable: some(later),
      close: some(later),
      impact: some(fc.tuple(minutes, fc.option(minutes))),
      cost: fc.nat(100_000),
      openTasks: fc.nat(2),
      restricted: fc.boolean(),
      members: fc.subarray(["carol", "dave"]),
    })
    .map((one): Case => ({ ...one, stable: one.stable ?? one.close }));
  await fc.assert(
    fc.asyncProperty(fc.array(cases, { maxLength: 25 }), fc.boolean(), async (all, admin) => {
      await insert(all);
      const isCounted = ({ at, restricted, members }: Case) =>
        Date.parse(at) >= start &&
        Date.parse(at) < end &&
        (admin || !restricted || members?.includes("carol"));
      const counted = all.filter(isCounted);
      for (const by of groupings) {
        const stats = await read(signedIn("carol", { admin }), { ...range, by });
        expect(stats.total).toEqual(plainly(counted));
        const keys = Map.groupBy(
          counted.flatMap((one) => keysOf(one, by).map((key) => ({ key, one }))),
          ({ key }) => key,
        );
        const shown = stats.groups.filter(({ incidents }) => incidents > 0);
        expect(shown.map(({ name }) => name).sort()).toEqual([...keys.keys()].sort());
        for (const { id: _, name, ...figures } of shown)
          expect(figures).toEqual(plainly(keys.get(name)!.map(({ one }) => one)));
      }
    }),
    { numRuns: effort(12) },
  );
}, 120_000);

function keysOf(one: Case, by: Grouping): string[] {
  if (by === "service") return one.services?.length ? one.services : [noService];
  if (by !== "week") return [one[by]];
  const day = Temporal.Instant.from(one.at).toZonedDateTimeISO("UTC").toPlainDate();
  return [day.subtract({ days: day.dayOfWeek - 1 }).toString()];
}

/** The definitions of docs/numbers.md, without regard to speed. */
function plainly(all: readonly Case[]): Figures {
  const percentiles = (of: (one: Case) => number | undefined) => {
    const seconds = all
      .flatMap((one) => of(one) ?? [])
      .map((minutes) => Math.round(minutes * 60_000) / 1000)
      .sort((a, b) => a - b);
    const at = (part: number) => {
      if (seconds.length === 0) return null;
      const place = part * (seconds.length - 1);
      const low = seconds[Math.floor(place)]!;
      return Math.round(low + (place - Math.floor(place)) * (seconds[Math.ceil(place)]! - low));
    };
    return { incidents: seconds.length, p50: at(0.5), p90: at(0.9) };
  };
  const first = (times: readonly number[] | undefined) =>
    times?.filter((at) => at >= 0).sort((a, b) => a - b)[0];
  const sum = (of: (one: Case) => number) => all.reduce((total, one) => total + of(one), 0);
  return {
    incidents: all.length,
    commander: percentiles((one) => first(one.commanders)),
    report: percentiles((one) => first(one.reports)),
    stable: percentiles((one) => one.stable),
    close: percentiles((one) => one.close),
    impact: percentiles(({ impact }) => (impact && impact[1] !== null ? impact[1] - impact[0] : undefined)),
    cost: sum((one) => one.cost!),
    tasks: sum((one) => (one.close === undefined ? 0 : one.openTasks!)),
  };
}

test.each([
  [0, "0s"],
  [59, "59s"],
  [90, "1m 30s"],
  [3600, "1h"],
  [3659, "1h"],
  [12_000, "3h 20m"],
  [2 * 86_400 + 4 * 3600 + 59, "2d 4h"],
])("%p seconds are %s", (seconds, text) => {
  expect(spanText(seconds)).toBe(text);
});

test("CSV has quotes where it needs them, and no formula of a spreadsheet", () => {
  const none = { incidents: 0, p50: null, p90: null };
  const times = Object.fromEntries(timeFigures.map((name) => [name, none])) as Pick<
    Figures,
    (typeof timeFigures)[number]
  >;
  const figures = {
    incidents: 1,
    ...times,
    commander: { incidents: 1, p50: 60, p90: 90 },
    cost: 7,
    tasks: 2,
  };
  const names = ["Disk", 'a "b", c', "=1+1", "+1", "-1", "@x", " =1", "\u200b=1", "＝1", '="a",b', "a=b"];
  const csv = csvOf({ by: "type", groups: names.map((name) => ({ id: 1, name, ...figures })) });
  const lines = csv.split("\r\n");
  const rest = ",1,1,60,90,0,,,0,,,0,,,0,,,7,2";
  expect(lines).toEqual([
    "type,incidents,commander_incidents,commander_p50_seconds,commander_p90_seconds,report_incidents,report_p50_seconds,report_p90_seconds,stable_incidents,stable_p50_seconds,stable_p90_seconds,close_incidents,close_p50_seconds,close_p90_seconds,impact_incidents,impact_p50_seconds,impact_p90_seconds,cost,open_tasks",
    ...[
      ...[
        "Disk",
        '"a ""b"", c"',
        "'=1+1",
        "'+1",
        "'-1",
        "'@x",
        "' =1",
        "'\u200b=1",
        "'＝1",
        `"'=""a"",b"`,
        "a=b",
      ],
    ].map((name) => name + rest),
    "",
  ]);
});
