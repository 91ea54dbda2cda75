import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import {
  conversationMessage,
  document,
  documentContent,
  documentTerm,
  documentVersion,
  incidentPriority,
  incidentType,
  incidentTypeTemplate,
  individual,
  individualTerm,
  participantGroupMember,
  rotation,
  rotationMember,
  service,
  team,
  teamIncidentType,
  term,
} from "../../drizzle/schema/index.ts";
import { type Person, personOf } from "../../tests/support/http/people.ts";
import { startTestServer, type TestServer } from "../../tests/support/http/server.ts";

// The whole flow with the built-in plugins that need no account.

let server: TestServer;
let alice: Person;
beforeAll(async () => {
  server = await startTestServer({
    pluginDocumentResolver: "document-matcher",
    pluginParticipant: "roster",
    pluginDocument: "markdown",
    pluginConversation: "channel",
    pluginParticipantGroup: "mailing-list",
  });
  alice = await personOf(server, "alice@example.com");
});
afterAll(() => server[Symbol.asyncDispose]());

test("a report brings people, a commander, documents, a conversation and a group; a repeat adds nothing", async () => {
  const { db, clock } = server;
  const at = clock.now();
  const stamps = { createdAt: at, updatedAt: at };
  const person = (name: string) => ({ name, email: `${name.toLowerCase()}@example.com`, ...stamps });
  const [olga, disko] = await db
    .insert(individual)
    .values([person("Olga"), person("Disko")])
    .returning();
  const [dataLoss] = await db
    .insert(term)
    .values({ text: "data loss", ...stamps })
    .returning();
  await db.insert(individualTerm).values({ individualId: disko!.id, termId: dataLoss!.id });
  const [duty] = await db
    .insert(service)
    .values({ name: "Duty", pluginSlug: "roster", ...stamps })
    .returning();
  const serviceId = duty!.id;
  await db.insert(rotation).values({ serviceId, startsAt: at, shiftHours: 12 });
  await db.insert(rotationMember).values({ serviceId, position: 0, individualId: olga!.id });
  const [type] = await db
    .insert(incidentType)
    .values({ name: "Outage", commanderServiceId: serviceId, ...stamps })
    .returning();
  const [priority] = await db
    .insert(incidentPriority)
    .values({ name: "High", reminderHours: 2, ...stamps })
    .returning();
  const [storage] = await db
    .insert(team)
    .values({ name: "Storage", email: "storage@example.com", ...stamps })
    .returning();
  await db.insert(teamIncidentType).values({ teamId: storage!.id, incidentTypeId: type!.id });
  const [runbook, template] = await db
    .insert(document)
    .values([
      { name: "Runbook", resourceType: "reference", ...stamps },
      { name: "Notes", resourceType: "template", pluginSlug: "markdown", resourceId: "notes", ...stamps },
    ])
    .returning();
  await db.insert(documentTerm).values({ documentId: runbook!.id, termId: dataLoss!.id, source: "Given" });
  const content = "# {{name}}\n\nCommander: {{commander}}";
  const hash = new Bun.CryptoHasher("sha256").update(content).digest();
  await db.insert(documentContent).values({ documentId: template!.id, content, hash, updatedAt: at });
  const link = { incidentTypeId: type!.id, resourceType: "incident", documentId: template!.id };
  await db.insert(incidentTypeTemplate).values(link);

  const kind = { incident_type_id: type!.id, incident_priority_id: priority!.id };
  const report = { title: "Disk full", description: "It was a data-loss", ...kind };
  const made = await alice.call("POST", "/incidents/", report);
  expect(made.http).toBe(201);
  const path = `/incidents/${made.body.id}`;
  const steps = async () => (await alice.call("GET", path)).body.steps as { step: string; state: string }[];
  while ((await steps()).some(({ state }) => state !== "Done")) await Bun.sleep(10);
  const detail = async () => (await alice.call("GET", path)).body;
  const before = await detail();
  expect(before).toMatchObject({
    reporter: { email: "alice@example.com" },
    commander: { email: "olga@example.com" },
    documents: [{ name: "Runbook", reasons: [{ kind: "term", name: "data loss" }] }],
    individuals: expect.arrayContaining([expect.objectContaining({ email: "disko@example.com" })]),
    teams: [{ name: "Storage" }],
    conversations: [{ plugin_slug: "channel" }],
    participant_groups: [{ plugin_slug: "mailing-list", name: made.body.name.toLowerCase() }],
  });
  const [notes, ...others] = await db.select().from(document).where(eq(document.incidentId, made.body.id));
  expect(others).toEqual([]);
  const [text] = await db.select().from(documentContent).where(eq(documentContent.documentId, notes!.id));
  expect(text?.content).toContain("Commander: Olga");
  const versions = db.select().from(documentVersion).where(eq(documentVersion.documentId, notes!.id));
  expect(await versions).toMatchObject([{ version: 1, author: "system" }]);
  expect(await db.$count(participantGroupMember)).toBe(4);
  expect(await db.$count(conversationMessage)).toBe(1);

  for (const { step } of before.steps) {
    const { body } = await alice.call("POST", `${path}/retry`, { step });
    expect(body.steps.map(({ state }: { state: string }) => state)).not.toContain("Failed");
  }
  expect({ ...(await detail()), steps: [] }).toEqual({ ...before, steps: [] });
  expect(await db.$count(document, eq(document.incidentId, made.body.id))).toBe(1);
  expect(await db.$count(participantGroupMember)).toBe(4);
  expect(await db.$count(conversationMessage)).toBe(1);
});
