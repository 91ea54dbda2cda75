import { afterAll, beforeAll, beforeEach } from "bun:test";
import { type IncidentIds, insertIncident } from "../domain/incident.ts";
import { insertEmptyIncident, noPlugins } from "./participants.ts";
import { type Person, personOf } from "./people.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** The setup of tests of something that belongs to an incident. */
export interface EmptyIncident {
  server: TestServer;
  member: Person;
  admin: Person;
  /** The ids of another incident, which has a row in every table. */
  ids: IncidentIds;
  /** A new incident for each test, without participants. */
  incidentId: number;
  /** The path under test: `/incidents/7/<collection>`. */
  path: string;
}

/** What the view of an event, a report or a message says about corrections while there are none. */
export const uncorrected = {
  version: 1,
  edited_at: null,
  edited_by: null,
  withdrawn_at: null,
  redacted_at: null,
};

/** Starts a server for a whole file, and passes a new incident to each test. */
export function useEmptyIncident(collection: string, take: (given: EmptyIncident) => void): void {
  let common: Omit<EmptyIncident, "incidentId" | "path">;
  beforeAll(async () => {
    const server = await startTestServer({}, noPlugins);
    const member = await personOf(server, "carol@example.com");
    const admin = await personOf(server, "root@example.com", ["admin"]);
    common = { server, member, admin, ids: await insertIncident(server.db, server.clock.now()) };
  });
  beforeEach(async () => {
    const { server, ids } = common;
    const incidentId = await insertEmptyIncident(server.db, ids, server.clock.now());
    take({ ...common, incidentId, path: `/incidents/${incidentId}/${collection}` });
  });
  afterAll(() => common.server[Symbol.asyncDispose]());
}
