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

test("paging returns every incident, even if all are reported within a millisecond", async () => {
  for (const time of ["2026-11-20 12:00:00.000499", "1969-07-20 20:17:40.0005"]) {
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
