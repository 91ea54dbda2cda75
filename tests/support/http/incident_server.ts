import { afterAll, beforeAll } from "bun:test";
import type { Config } from "../../../core/config.ts";
import { type IncidentIds, insertIncident } from "../domain/incident.ts";
import { type Person, personOf } from "./people.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** The setup of tests of the incident API. */
export interface IncidentServer {
  server: TestServer;
  admin: Person;
  member: Person;
  /** The ids of an incident that has a row in every table. */
  ids: IncidentIds;
}

/** Starts a server with an incident for a whole file, and passes it to `take`. */
export function useIncidentServer(
  take: (given: IncidentServer) => void,
  overrides: Partial<Config> = {},
): void {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer(overrides);
    const admin = await personOf(server, "root@example.com", ["admin"]);
    const member = await personOf(server, "carol@example.com");
    take({ server, admin, member, ids: await insertIncident(server.db, server.clock.now()) });
  });
  afterAll(() => server[Symbol.asyncDispose]());
}
