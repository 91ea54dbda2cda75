import { expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { readConfig } from "../../core/config.ts";
import { openDatabase } from "../../drizzle/client.ts";
import { somebodyWaits } from "../../tests/support/database/blocked.ts";
import { watchDatabase } from "../../tests/support/database/traffic.ts";
import { flowEnded } from "../../tests/support/domain/flow.ts";
import { insertIncident } from "../../tests/support/domain/incident.ts";
import { personOf } from "../../tests/support/http/people.ts";
import { startTestServer } from "../../tests/support/http/server.ts";

const defaults = readConfig({});
const defaultPlugins = {
  pluginDocumentResolver: defaults.pluginDocumentResolver,
  pluginParticipant: defaults.pluginParticipant,
  pluginDocument: defaults.pluginDocument,
  pluginConversation: defaults.pluginConversation,
  pluginParticipantGroup: defaults.pluginParticipantGroup,
};

test("a report takes at most 45 round trips and 3 commits with the default plugins", async () => {
  await using first = await startTestServer();
  await using database = await watchDatabase(first.databaseUrl);
  await using server = await first.another({ databaseUrl: database.url, ...defaultPlugins });
  const ids = await insertIncident(server.db, server.clock.now());
  const member = await personOf(server, "carol@example.com");
  const report = async () => {
    const { http, body } = await member.call("POST", "/incidents/", {
      title: "Disk full",
      description: "",
      incident_type_id: ids.incidentTypeId,
      incident_priority_id: ids.incidentPriorityId,
    });
    expect(http).toBe(201);
    await flowEnded(first.db, body.id);
  };
  const costs = [];
  for (let nth = 0; nth < 10; nth += 1) {
    database.reset();
    await report();
    costs.push({ roundTrips: database.roundTrips, commits: database.commits });
  }
  // The first ones open connections and prepare statements, and a server also has other work.
  expect(Math.min(...costs.map(({ roundTrips }) => roundTrips))).toBeLessThanOrEqual(45);
  expect(Math.min(...costs.map(({ commits }) => commits))).toBeLessThanOrEqual(3);
});

test("reads get a connection when everybody reports", async () => {
  await using server = await startTestServer();
  const ids = await insertIncident(server.db, server.clock.now());
  const member = await personOf(server, "carol@example.com");
  const held = openDatabase(server.databaseUrl, 2);
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const locked = Promise.withResolvers<void>();
  const holding = held.db.transaction(async (tx) => {
    await tx.execute(sql`select from incident_type where id = ${ids.incidentTypeId} for update`);
    locked.resolve();
    await released;
  });
  await locked.promise;
  // More than there are connections.
  const reports = Array.from({ length: 20 }, () =>
    member.call("POST", "/incidents/", {
      title: "Disk full",
      description: "",
      incident_type_id: ids.incidentTypeId,
      incident_priority_id: ids.incidentPriorityId,
    }),
  );
  try {
    await somebodyWaits(held.db, 3);
    expect((await member.call("GET", "/incidents/")).http).toBe(200);
  } finally {
    release();
    await holding;
  }
  expect(new Set((await Promise.all(reports)).map(({ http }) => http))).toEqual(new Set([201]));
  await held.close();
});
