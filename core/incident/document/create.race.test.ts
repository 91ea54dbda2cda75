import { afterAll, beforeAll, expect, test } from "bun:test";
import { eq } from "drizzle-orm";
import { event, participant, term } from "../../../drizzle/schema/index.ts";
import { pluginsOf } from "../../../plugins/fake/plugins.ts";
import { inTheWay } from "../../../tests/support/database/blocked.ts";
import { type FlowTest, rita, startFlowTest } from "../../../tests/support/domain/flow.ts";
import { lockIncident } from "../incident/lock.ts";
import { updateIncident } from "../lifecycle/update.ts";
import { createDocument } from "./create.ts";

let flow: FlowTest;
beforeAll(async () => {
  flow = await startFlowTest();
});
afterAll(() => flow[Symbol.asyncDispose]());

const member = { ...rita, user: "carol@example.com" };

test("an incident never becomes Restricted while a non-participant adds a document", async () => {
  const { db, clock, typeId: incidentTypeId, priorityId: incidentPriorityId } = flow;
  const plugins = pluginsOf();
  const incidentId = await flow.report(plugins);
  const stamps = { createdAt: clock.now(), updatedAt: clock.now() };
  const [outage] = await db
    .insert(term)
    .values({ text: "outage", ...stamps })
    .returning({ id: term.id });
  const termIds = [outage!.id];
  const written = { name: "Notes", description: "", resourceType: "reference", weblink: null };
  const kept = { incidentId, pluginSlug: null, resourceId: null };
  const restricted = { status: "Active", visibility: "Restricted", resolution: null } as const;
  const text = { title: "Disk full", description: "" };
  const [added, hidden] = await inTheWay<unknown>(
    db,
    // Terms are locked after the incident.
    (tx) => tx.select().from(term).where(eq(term.id, outage!.id)).for("update"),
    () => createDocument(flow.context(plugins), member, { ...written, ...kept, termIds }),
    () =>
      updateIncident(flow.context(plugins), rita, {
        id: incidentId,
        version: 1,
        incidentTypeId,
        incidentPriorityId,
        ...text,
        ...restricted,
      }),
  );
  expect(added).toMatchObject({ status: "fulfilled", value: { incidentId, termIds } });
  expect(hidden).toMatchObject({ status: "fulfilled", value: { incident: { visibility: "Restricted" } } });
  const rows = await db.select().from(event).where(eq(event.incidentId, incidentId)).orderBy(event.id);
  expect(rows.map(({ kind }) => kind)).toEqual(["incident.reported", "document.created", "incident.updated"]);
});

test("somebody removed from a Restricted incident while adding a document gets not found", async () => {
  const { db, clock } = flow;
  const plugins = pluginsOf();
  const incidentId = await flow.report(plugins, { visibility: "Restricted" });
  const kept = { incidentId, pluginSlug: null, resourceId: null };
  const written = { name: "Notes", description: "", resourceType: "reference", weblink: null };
  const [added] = await inTheWay<unknown>(
    db,
    async (tx) => {
      await lockIncident(tx, "worker", incidentId);
      await tx.update(participant).set({ leftAt: clock.now() }).where(eq(participant.incidentId, incidentId));
    },
    () => createDocument(flow.context(plugins), rita, { ...written, ...kept }),
  );
  expect(added).toMatchObject({
    status: "rejected",
    reason: { code: "invalid_input", field: "incident_id", detail: "There is no such incident" },
  });
});
