import { afterAll, beforeAll, expect, test } from "bun:test";
import { and, eq, like } from "drizzle-orm";
import fc from "fast-check";
import type { IncidentStatus } from "../../core/incident/incident/transition.ts";
import { event, incident, incidentStatuses } from "../../drizzle/schema/index.ts";
import { type IncidentIds, insertIncident } from "../../tests/support/domain/incident.ts";
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

/** The expected state of an incident after any number of PUTs. */
interface Model {
  status: IncidentStatus;
  version: number;
  stableAt: string | null;
  /** Of an Active incident that was reopened, if it was Closed. */
  stableBefore: string | null;
  closedAt: string | null;
  title: string;
  timeline: { kind: string; at: string }[];
  costBasis: number;
}

interface Put {
  status: IncidentStatus;
  /** The distance between the version that the PUT names and the current one. */
  stale: number;
  retitle: boolean;
  /** Seconds that pass before the PUT; few, so that the access token stays valid. */
  seconds: number;
}

const puts = fc.array(
  fc.record<Put>({
    status: fc.constantFrom(...incidentStatuses),
    stale: fc.constantFrom(0, 0, 0, 0, -1, 1),
    retitle: fc.boolean(),
    seconds: fc.constantFrom(0, 1, 2),
  }),
  { minLength: 1, maxLength: 12 },
);

/** The expected answer, and the model after the PUT. */
function expected(model: Model, { status, stale, retitle }: Put, at: string): { http: number; model: Model } {
  const { status: from, version } = model;
  if (stale !== 0) return { http: version + stale < 1 ? 400 : 409, model };
  if (from === "Closed" && status === "Stable") return { http: 409, model };
  const kinds: string[] = retitle ? ["incident.updated"] : [];
  const next = { ...model, status, version: version + 1, title: retitle ? `Title ${version}` : model.title };
  if (from !== status) {
    next.costBasis += 1;
    if (status === "Active") kinds.push("incident.reopened");
    const since = status === "Closed" ? (model.stableAt ?? model.stableBefore) : model.stableAt;
    if (status !== "Active" && since === null) kinds.push("incident.stable");
    if (status === "Closed") kinds.push("incident.closed");
    next.stableAt = status === "Active" ? null : (since ?? at);
    next.stableBefore = from === "Closed" ? model.stableAt : null;
    next.closedAt = status === "Closed" ? at : null;
  }
  return {
    http: 200,
    model: { ...next, timeline: [...model.timeline, ...kinds.map((kind) => ({ kind, at }))] },
  };
}

async function seen(id: number): Promise<Omit<Model, "stableBefore">> {
  const [row] = await server.db.select().from(incident).where(eq(incident.id, id));
  const events = await server.db
    .select()
    .from(event)
    .where(and(eq(event.incidentId, id), like(event.kind, "incident.%")))
    .orderBy(event.id);
  const { status, version, title, stableAt, closedAt, costBasis } = row!;
  return {
    status,
    version,
    title,
    costBasis,
    stableAt: stableAt?.toISOString() ?? null,
    closedAt: closedAt?.toISOString() ?? null,
    timeline: events.map(({ kind, at }) => ({ kind, at: at.toISOString() })),
  };
}

/** Inserts an incident without follow-up steps, so that only PUTs change it. */
async function inserted(): Promise<number> {
  const at = server.clock.now();
  const { incidentTypeId, incidentPriorityId } = ids;
  const stamps = { reportedAt: at, createdAt: at, updatedAt: at };
  const [row] = await server.db
    .insert(incident)
    .values({ title: "Title", description: "", incidentTypeId, incidentPriorityId, ...stamps })
    .returning({ id: incident.id });
  return row!.id;
}

test("any sequence of PUTs leaves the incident and its timeline as the rules require", async () => {
  const kind = { incident_type_id: ids.incidentTypeId, incident_priority_id: ids.incidentPriorityId };
  await fc.assert(
    fc.asyncProperty(puts, async (sequence) => {
      const id = await inserted();
      let model: Model = {
        status: "Active",
        version: 1,
        stableAt: null,
        stableBefore: null,
        closedAt: null,
        title: "Title",
        timeline: [],
        costBasis: 1,
      };
      for (const put of sequence) {
        server.clock.advance(put.seconds);
        const outcome = expected(model, put, server.clock.now().toISOString());
        const answer = await member.call("PUT", `/incidents/${id}`, {
          ...kind,
          description: "",
          status: put.status,
          visibility: "Open",
          resolution: null,
          title: put.retitle ? `Title ${model.version}` : model.title,
          version: model.version + put.stale,
        });
        expect(answer.http).toBe(outcome.http);
        model = outcome.model;
        const { stableBefore: _, ...state } = model;
        expect(await seen(id)).toEqual(state);
      }
    }),
    { numRuns: 60 },
  );
}, 120_000);
