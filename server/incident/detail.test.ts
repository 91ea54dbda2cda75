import { describe, expect, test } from "bun:test";
import {
  document,
  incident,
  participant,
  participantRole,
  recommendation,
} from "../../drizzle/schema/index.ts";
import { type IncidentServer, useIncidentServer } from "../../tests/support/http/incident_server.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";

let { server, admin, member, ids } = {} as IncidentServer;
useIncidentServer((given) => {
  ({ server, admin, member, ids } = given);
});

async function reported(values: object = {}): Promise<number> {
  const { body } = await member.call("POST", "/incidents/", {
    title: "Disk full",
    description: "",
    incident_type_id: ids.incidentTypeId,
    incident_priority_id: ids.incidentPriorityId,
    ...values,
  });
  return body.id;
}

describe("GET /incidents/{incident_id}", () => {
  test("shows participants, follow-up steps and proposals", async () => {
    const at = server.clock.now();
    const { alice, incidentId, teamId } = ids;
    const reasons = [{ kind: "incident_type" as const, id: ids.incidentTypeId, name: "Outage" }];
    const common = { incidentId, pluginSlug: "matcher", reasons, createdAt: at };
    await server.db.insert(recommendation).values([
      { ...common, individualId: alice },
      { ...common, teamId },
    ]);
    const { http, body, headers } = await member.call("GET", `/incidents/${incidentId}`);
    expect(http).toBe(200);
    expect(body).toMatchObject({
      id: incidentId,
      title: "Disk full",
      status: "Active",
      version: 1,
      reporter: { id: ids.bob, name: "bob", email: "bob@example.com" },
      commander: { id: alice, name: "alice", email: "alice@example.com" },
    });
    expect(body.steps).toEqual([
      {
        step: "reported:documents",
        state: "Pending",
        attempts: 0,
        error: null,
        due_at: at.toISOString(),
        finished_at: null,
      },
    ]);
    expect(body.conversations).toEqual([
      { plugin_slug: "channel", external_id: null, weblink: null, archived_at: null },
    ]);
    expect(body.participant_groups).toEqual([
      { plugin_slug: "list", name: "inc-1", email: null, weblink: null },
    ]);
    expect(body.documents).toEqual([
      {
        document_id: ids.documentId,
        name: "Notes",
        weblink: null,
        plugin_slug: "resolver",
        reasons: [{ kind: "other", name: "asked" }],
      },
    ]);
    expect(body.individuals).toEqual([
      { individual_id: alice, name: "alice", email: "alice@example.com", plugin_slug: "matcher", reasons },
    ]);
    expect(body.teams).toEqual([{ team_id: teamId, name: "Storage", plugin_slug: "matcher", reasons }]);
    expect(headers.get("etag")).toBe(`"${body.version}"`);
  });

  test("answers in full despite If-None-Match: a type is renamed without a new version of the incident", async () => {
    const path = `/incidents/${await reported()}`;
    const { body, headers } = await member.call("GET", path);
    const typePath = `/incident_types/${ids.incidentTypeId}`;
    const type = (await admin.call("GET", typePath)).body;
    expect((await admin.call("PUT", typePath, { ...type, name: "Renamed" })).http).toBe(200);
    const again = await member.call("GET", path, undefined, { "if-none-match": headers.get("etag")! });
    expect([again.http, again.body.incident_type.name]).toEqual([200, "Renamed"]);
    expect([again.body.version, again.headers.get("cache-control")]).toEqual([body.version, "no-store"]);
    expect((await admin.call("PUT", typePath, { ...type, version: type.version + 1 })).http).toBe(200);
  });

  test("has empty lists without any, and names the original reporter even after they left", async () => {
    const [row] = await server.db
      .insert(incident)
      .values({
        title: "Bare",
        description: "",
        reportedAt: server.clock.now(),
        incidentTypeId: ids.incidentTypeId,
        incidentPriorityId: ids.incidentPriorityId,
        createdAt: server.clock.now(),
        updatedAt: server.clock.now(),
      })
      .returning();
    const { body } = await member.call("GET", `/incidents/${row!.id}`);
    expect(body).toMatchObject({ reporter: null, commander: null, steps: [], conversations: [] });
    expect(body).toMatchObject({ participant_groups: [], documents: [], individuals: [], teams: [] });

    const at = server.clock.now();
    const incidentId = row!.id;
    const [reporter] = await server.db
      .insert(participant)
      .values({ incidentId, individualId: ids.bob, joinedAt: at, leftAt: at })
      .returning();
    await server.db.insert(participantRole).values([
      { participantId: reporter!.id, incidentId, role: "reporter", assumedAt: at, renouncedAt: at },
      { participantId: reporter!.id, incidentId, role: "commander", assumedAt: at, renouncedAt: at },
    ]);
    const [later] = await server.db
      .insert(participant)
      .values({ incidentId, individualId: ids.alice, joinedAt: at })
      .returning();
    await server.db
      .insert(participantRole)
      .values({ participantId: later!.id, incidentId, role: "reporter", assumedAt: at });
    expect((await member.call("GET", `/incidents/${row!.id}`)).body).toMatchObject({
      reporter: { email: "bob@example.com" },
      commander: null,
    });
  });

  test("lists only proposed documents that the reader may read", async () => {
    const at = server.clock.now();
    const incidentId = await reported();
    const secret = await reported({ visibility: "Restricted" });
    for (const [name, of] of [
      ["Open", null],
      ["Hidden", secret],
    ] as const) {
      const [row] = await server.db
        .insert(document)
        .values({ name, resourceType: "reference", incidentId: of, createdAt: at, updatedAt: at })
        .returning();
      await server.db
        .insert(recommendation)
        .values({ incidentId, documentId: row!.id, pluginSlug: "matcher", reasons: [], createdAt: at });
    }
    const namesFor = async (person: Person) => {
      const { body } = await person.call("GET", `/incidents/${incidentId}`);
      return body.documents.map(({ name }: { name: string }) => name);
    };
    const outsider = await personOf(server, "mallory@example.com");
    expect(await namesFor(outsider)).toEqual(["Open"]);
    expect(await namesFor(member)).toEqual(["Open", "Hidden"]);
    expect(await namesFor(admin)).toEqual(["Open", "Hidden"]);
  });
});
