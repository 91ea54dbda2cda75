import { afterAll, beforeAll, beforeEach } from "bun:test";
import { type IncidentIds, insertIncident } from "../domain/incident.ts";
import { insertEmptyIncident, noPlugins } from "./participants.ts";
import { type Person, personOf } from "./people.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** What tests of something that belongs to an incident begin with. */
export interface EmptyIncident {
  server: TestServer;
  member: Person;
  admin: Person;
  /** Of another incident, which has a row of everything. */
  ids: IncidentIds;
  /** A new one for each test, with nobody in it. */
  incidentId: number;
  /** Of what is tested: `/incidents/7/<collection>`. */
  path: string;
}

/** For a whole file: a server, and each test is handed an incident of its own. */
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
