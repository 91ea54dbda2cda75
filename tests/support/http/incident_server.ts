import { afterAll, beforeAll, expect } from "bun:test";
import type { Config } from "../../../core/config.ts";
import { type IncidentIds, insertIncident } from "../domain/incident.ts";
import { until } from "../process/until.ts";
import { type Person, personOf } from "./people.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** The setup of tests of the incident API. */
export interface IncidentServer {
  server: TestServer;
  admin: Person;
  member: Person;
  /** The ids of an incident that has a row in every table. */
  ids: IncidentIds;
  /** Reports an incident as the member. */
  reported(title?: string, values?: object): Promise<{ id: number; name: string }>;
  /** The texts of the notes of an incident, newest first. */
  notesOf(id: number): Promise<string[]>;
  /** Waits for the document that a step of an incident creates, and for its text, which the step writes then. */
  documentOf(id: number): Promise<{ id: number }>;
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
    const ids = await insertIncident(server.db, server.clock.now());
    const kind = { incident_type_id: ids.incidentTypeId, incident_priority_id: ids.incidentPriorityId };
    const reported = async (title = "Broken", values: object = {}) => {
      const wanted = { title, description: "First", ...kind, ...values };
      const { http, body } = await member.call("POST", "/incidents/", wanted);
      expect([http, body.detail]).toEqual([201, undefined]);
      return body;
    };
    const notesOf = async (id: number) => {
      const { body } = await member.call("GET", `/incidents/${id}/events?kind=note`);
      return body.items.map(({ description }: { description: string }) => description);
    };
    const documentOf = (id: number) =>
      until<{ id: number }>("the document", async () => {
        const [found] = (await admin.call("GET", `/documents/?incident_id=${id}`)).body.items;
        return found && (await admin.call("GET", `/documents/${found.id}/content`)).http === 200 && found;
      });
    take({ server, admin, member, ids, reported, notesOf, documentOf });
  });
  afterAll(() => server[Symbol.asyncDispose]());
}
