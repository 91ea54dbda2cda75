import { afterAll, beforeAll } from "bun:test";
import type { Config } from "../../../core/config.ts";
import { type IncidentIds, insertIncident } from "../domain/incident.ts";
import { type Person, personOf } from "./people.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** What tests of what people read and write begin with. */
export interface IncidentServer {
  server: TestServer;
  admin: Person;
  member: Person;
  /** Of an incident, which has a row of everything. */
  ids: IncidentIds;
}

/** For a whole file: a server with an incident, handed over once it is there. */
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
