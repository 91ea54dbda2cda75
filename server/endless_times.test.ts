import { afterAll, beforeAll, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { insertIncident } from "../tests/support/domain/incident.ts";
import { type Person, personOf } from "../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../tests/support/http/server.ts";

let server: TestServer;
let alice: Person;
let incidents: number[];
beforeAll(async () => {
  server = await startTestServer();
  const first = await insertIncident(server.db, server.clock.now());
  alice = await personOf(server, "alice@example.com");
  const like = sql`title, description, incident_type_id, incident_priority_id, reported_at, created_at, updated_at`;
  const more = await server.db.execute<{ id: string }>(
    sql`insert into incident (${like}) select ${like} from incident, generate_series(1, 4) returning id`,
  );
  incidents = [first.incidentId, ...more.map(({ id }) => Number(id))];
});
afterAll(() => server[Symbol.asyncDispose]());

/** Writes a time into all timestamp columns of a table, as far as its constraints allow. */
async function writeTimes(table: string, time: string): Promise<void> {
  const columns = await server.db.execute<{ column_name: string }>(sql`
    select column_name from information_schema.columns
    where table_schema = 'public' and table_name = ${table} and data_type = 'timestamp with time zone'`);
  expect(columns.length).toBeGreaterThan(0);
  for (const { column_name } of columns) {
    await server.db
      .execute(sql`update ${sql.identifier(table)} set ${sql.identifier(column_name)} = ${time}`)
      .catch(() => {});
  }
}

const id = 1;
const routes = [
  ...["", "/participants/", "/events/", "/reports/", "/messages/"].map((path) => `/incidents/${id}${path}`),
  "/incidents/",
  "/incidents/?sort=id",
  "/tasks/",
  "/documents/",
  "/individuals",
  "/teams",
  "/services",
  "/incident_types",
  "/incident_priorities",
  "/terms",
  "/search?q=disk",
];

test.each([
  ["infinity", "9999-12-31T23:59:59.999Z"],
  ["-infinity", "0001-01-01T00:00:00.000Z"],
  ["294276-12-01", "9999-12-31T23:59:59.999Z"],
  ["4713-12-01 BC", "0001-01-01T00:00:00.000Z"],
  ["0050-06-01", "0001-01-01T00:00:00.000Z"],
])("a time of %s is read as %s", async (time, read) => {
  const tables = [
    "incident",
    "participant",
    "participant_role",
    "event",
    "status_report",
    "task",
    "document",
  ];
  for (const table of [...tables, "individual", "team", "service", "rotation", "conversation", "flow_step"])
    await writeTimes(table, time);
  for (const table of ["incident_type", "incident_priority", "term"]) await writeTimes(table, time);
  const answers = await Promise.all(routes.map((path) => alice.call("GET", path)));
  const failed = server.logged.filter((line) => line.includes("request failed"));
  expect(failed).toEqual([]);
  expect(answers.map(({ http }, at) => [routes[at], http])).toEqual(routes.map((path) => [path, 200]));
  expect(answers[0]!.body).toMatchObject({ reported_at: read });
});

test("paging returns every incident, even if all are reported at infinity or within a millisecond", async () => {
  const within = ["2026-11-20 12:00:00.000499", "1969-07-20 20:17:40.0005"];
  for (const time of ["infinity", "-infinity", "294276-12-01", "4713-12-01 BC", ...within]) {
    await server.db.execute(sql`update incident set reported_at = ${time} where id > ${incidents[0]}`);
    for (const sort of ["reported_at", "-reported_at"]) {
      const seen: number[] = [];
      for (let cursor: string | null = ""; cursor !== null;) {
        const parameters = new URLSearchParams({ sort, limit: "1", ...(cursor ? { cursor } : {}) });
        const { http, body } = await alice.call("GET", `/incidents/?${parameters}`);
        expect(http).toBe(200);
        const page = body as unknown as { items: { id: number }[]; next_cursor: string | null };
        seen.push(...page.items.map((one) => one.id));
        expect(seen.length).toBeLessThanOrEqual(incidents.length);
        cursor = page.next_cursor;
      }
      expect(seen.toSorted((a, b) => a - b)).toEqual(incidents);
    }
  }
});
