import { expect, test } from "bun:test";
import { readConfig } from "../../core/config.ts";
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
