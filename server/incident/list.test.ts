import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { incident, incidentType, participant, participantRole } from "../../drizzle/schema/index.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
import { pagesOf } from "../../tests/support/http/pages.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

let server: TestServer;
let member: Person;
let ids: IncidentIds;
beforeAll(async () => {
  server = await startTestServer();
  member = await personOf(server, "carol@example.com");
  ids = await insertIncident(server.db, server.clock.now());
});
afterAll(() => server[Symbol.asyncDispose]());

type Values = Partial<typeof incident.$inferInsert>;

/** Creates a type, so that a test can list only its incidents. */
async function newType(): Promise<string> {
  const at = server.clock.now();
  const [row] = await server.db
    .insert(incidentType)
    .values({ name: crypto.randomUUID(), createdAt: at, updatedAt: at })
    .returning();
  return String(row!.id);
}

async function insert(type: string, values: Values[]): Promise<number[]> {
  const at = server.clock.now();
  const rows = await server.db
    .insert(incident)
    .values(
      values.map((value) => ({
        title: "Untitled",
        description: "",
        reportedAt: at,
        createdAt: at,
        updatedAt: at,
        incidentTypeId: Number(type),
        incidentPriorityId: ids.incidentPriorityId,
        ...value,
      })),
    )
    .returning({ id: incident.id });
  return rows.map(({ id }) => id);
}

async function page(parameters: Record<string, string>) {
  const { http, body } = await member.call("GET", `/incidents/?${new URLSearchParams(parameters)}`);
  expect([http, body]).toMatchObject([200, {}]);
  return body as { items: { id: number; title: string }[]; next_cursor: string | null };
}

/** Returns the titles on all pages; `between` runs after each page. */
async function walk(parameters: Record<string, string>, between = async () => {}): Promise<string> {
  let titles = "";
  const path = `/incidents/?${new URLSearchParams(parameters)}`;
  for await (const { items, next_cursor } of pagesOf(member, path)) {
    titles += items.map(({ title }: { title: string }) => title).join("");
    if (next_cursor) await between();
  }
  return titles;
}

const hour = (n: number) => new Date(Date.UTC(2026, 10, 20, n));
/** Inserted in this order; b, c and e were reported at the same time. */
const letters = (
  [
    ["d", 3],
    ["b", 2],
    ["a", 1],
    ["c", 2],
    ["e", 2],
  ] as const
).map(([title, n]) => ({ title, reportedAt: hour(n) }));
const orders = { "-reported_at": "decba", reported_at: "abced", id: "dbace", "-id": "ecabd" };

describe("pages", () => {
  test.each(Object.entries(orders))("sorted by %s", async (sort, order) => {
    const incident_type_id = await newType();
    await insert(incident_type_id, letters);
    for (const limit of ["1", "2", "3", "5", "200"])
      expect(await walk({ incident_type_id, sort, limit })).toBe(order);
    if (sort === "-reported_at") expect(await walk({ incident_type_id })).toBe(order);
  });

  test.each(Object.entries(orders))(
    "sorted by %s, show each once while others are inserted",
    async (sort, order) => {
      const incident_type_id = await newType();
      await insert(incident_type_id, letters);
      let left = 3;
      const all = await walk({ incident_type_id, sort, limit: "2" }, async () => {
        if (left-- <= 0) return;
        // Before, between and after what was shown, and at the same time.
        await insert(
          incident_type_id,
          [0, 2, 2.5, 4].map((n) => ({ title: "X", reportedAt: hour(n) })),
        );
      });
      expect(all.replaceAll("X", "")).toBe(order);
    },
  );

  test("hold 50 by default; one that is exactly full is the last", async () => {
    const incident_type_id = await newType();
    await insert(
      incident_type_id,
      Array.from({ length: 51 }, () => ({})),
    );
    expect((await page({ incident_type_id })).items).toHaveLength(50);
    expect((await page({ incident_type_id, limit: "51" })).next_cursor).toBeNull();
  });

  test("show the names of an incident's type and priority", async () => {
    const { items } = await page({ incident_type_id: String(ids.incidentTypeId) });
    expect(items).toMatchObject([
      {
        id: ids.incidentId,
        name: "INC-1",
        title: "Disk full",
        status: "Active",
        cost: 0,
        incident_type: { id: ids.incidentTypeId, name: "Outage" },
        incident_priority: { id: ids.incidentPriorityId, name: "Urgent" },
      },
    ]);
    expect(items[0]).not.toHaveProperty("steps");
  });
});

describe("a filter", () => {
  test("works by status, visibility, type and priority", async () => {
    const incident_type_id = await newType();
    await insert(incident_type_id, [
      { title: "a" },
      { title: "s", status: "Stable", stableAt: hour(1) },
      { title: "c", status: "Closed", stableAt: hour(1), closedAt: hour(2) },
    ]);
    for (const [status, title] of Object.entries({ Active: "a", Stable: "s", Closed: "c" }))
      expect(await walk({ incident_type_id, status })).toBe(title);
    expect(await walk({ incident_type_id, visibility: "Open" })).toBe("csa");
    expect(await walk({ incident_type_id, visibility: "Restricted" })).toBe("");
    const incident_priority_id = String(ids.incidentPriorityId);
    expect(await walk({ incident_type_id, incident_priority_id })).toBe("csa");
    expect(await walk({ incident_type_id, incident_priority_id: "4711" })).toBe("");
  });

  test("by time includes the start and excludes the end", async () => {
    const incident_type_id = await newType();
    await insert(
      incident_type_id,
      [1, 2, 3].map((n) => ({ title: String(n), reportedAt: hour(n) })),
    );
    const between = (reported_after: string, reported_before: string) =>
      walk({ incident_type_id, reported_after, reported_before });
    expect(await between("2026-11-20T01:00:00Z", "2026-11-20T03:00:00Z")).toBe("21");
    expect(await between("2026-11-20T01:00:00.001Z", "2026-11-20T03:00:00.001Z")).toBe("32");
    expect(await between("2026-11-20T03:00+02:00", "2026-11-19T21:30:00-05:30")).toBe("21");
    expect(await between("2026-11-20T03:00:00Z", "2026-11-20T01:00:00Z")).toBe("");
  });

  test("by person finds current participants, by commander the current commander", async () => {
    const incident_type_id = await newType();
    const at = server.clock.now();
    const { alice, bob } = ids;
    const takesPart = async (
      incidentId: number,
      individualId: number,
      role: "commander" | "scribe",
      left = false,
    ) => {
      const ended = left ? at : null;
      const [row] = await server.db
        .insert(participant)
        .values({ incidentId, individualId, joinedAt: at, leftAt: ended })
        .returning();
      const participantId = row!.id;
      await server.db
        .insert(participantRole)
        .values({ participantId, incidentId, role, assumedAt: at, renouncedAt: ended });
      return participantId;
    };
    const titles = ["1", "2", "3", "4"].map((title) => ({ title }));
    const [one, two, three, four] = (await insert(incident_type_id, titles)) as [
      number,
      number,
      number,
      number,
    ];
    await takesPart(one, alice, "commander");
    await takesPart(one, bob, "scribe");
    await takesPart(two, alice, "scribe");
    await takesPart(three, alice, "commander", true);
    const handedOver = await takesPart(four, alice, "scribe");
    await server.db.insert(participantRole).values({
      participantId: handedOver,
      incidentId: four,
      role: "commander",
      assumedAt: at,
      renouncedAt: at,
    });
    const found = async (parameters: Record<string, string>) => walk({ incident_type_id, ...parameters });
    expect(await found({ participant: "alice@example.com" })).toBe("421");
    expect(await found({ commander: "alice@example.com" })).toBe("1");
    expect(await found({ commander: "ALICE" })).toBe("1");
    expect(await found({ participant: "bob@example.com" })).toBe("1");
    expect(await found({ commander: "bob@example.com" })).toBe("");
    expect(await found({ commander: "alice@example.com", participant: "bob@example.com" })).toBe("1");
    expect(await found({ participant: "nobody@example.com" })).toBe("");
  });
});

describe("a search", () => {
  test("finds stems, names and resolutions, best match first", async () => {
    const incident_type_id = await newType();
    const [first] = await insert(incident_type_id, [
      { title: "1", description: "databases failed once" },
      { title: "2 Database failing", description: "databases fail" },
      { title: "3", description: "soup" },
      { title: "4", resolution: "The database no longer fails" },
    ]);
    const found = (q: string, more = {}) => walk({ incident_type_id, q, limit: "1", ...more });
    expect(await found("database failing")).toBe("2 Database failing14");
    expect(await found("database failing", { sort: "id" })).toBe("12 Database failing4");
    expect(await found("soup -kitchen")).toBe("3");
    const { name } = (await member.call("GET", `/incidents/${first}`)).body;
    expect(await found(name)).toBe("1");
    expect(await found(name.toLowerCase())).toBe("1");
  });
});

describe("refuses", () => {
  test.each([
    ["sort", "cost"],
    ["q", "a\0b"],
    ["q", "a".repeat(501)],
    ["status", "Open"],
    ["status", ""],
    ["visibility", "Secret"],
    ["incident_type_id", "-1"],
    ["incident_priority_id", "0x1"],
    ["commander", ""],
    ["commander", "a b@example.com"],
    ["participant", "a\0b"],
    ["participant", "a".repeat(300)],
    ["reported_after", ""],
    ["reported_after", "yesterday"],
    ["reported_after", "2026-11-19"],
    ["reported_after", "2026-02-30T12:00:00Z"],
    ["reported_after", "2026-11-20T24:00:00Z"],
    ["reported_after", "2026-11-20T12:00:61Z"],
    ["reported_before", "2026-11-19T12:00:00"],
    ["reported_before", "2026-11-20T12:00:00+99:00"],
    ["reported_before", "9".repeat(400)],
    ["cursor", ""],
  ])("%s=%s", async (field, value) => {
    const answer = await member.call("GET", `/incidents/?${new URLSearchParams({ [field]: value })}`);
    expect(answer).toMatchObject({ http: 400, body: { code: "invalid_input", field } });
    if (value.length > 4) expect(JSON.stringify(answer.body)).not.toContain(value);
  });

  test("a cursor of another sort, search or filter", async () => {
    const incident_type_id = await newType();
    await insert(incident_type_id, letters);
    const own = { incident_type_id, status: "Active" };
    const { next_cursor } = await page({ ...own, limit: "1" });
    const cursor = next_cursor!;
    await page({ ...own, cursor, limit: "3" });
    for (const foreign of [
      { incident_type_id },
      { ...own, status: "Closed" },
      { ...own, sort: "id" },
      { ...own, sort: "reported_at" },
      { ...own, q: "a" },
      { ...own, visibility: "Open" },
      { ...own, incident_priority_id: "1" },
      { ...own, commander: "alice@example.com" },
      { ...own, participant: "alice@example.com" },
      { ...own, reported_after: "2026-11-20T12:00:00Z" },
      { ...own, reported_before: "2026-11-20T12:00:00Z" },
    ]) {
      const query = new URLSearchParams({ ...(foreign as Record<string, string>), cursor });
      expect([foreign, await member.call("GET", `/incidents/?${query}`)]).toMatchObject([
        foreign,
        { http: 400, body: { field: "cursor" } },
      ]);
    }
  });
});
