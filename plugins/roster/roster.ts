import { Type } from "@sinclair/typebox";
import { eq } from "drizzle-orm";
import { onCall } from "../../core/catalog/rotation/on_call.ts";
import { rosterSlug, rotationColumn } from "../../core/catalog/rotation/rotation.ts";
import { matchIncident } from "../../core/incident/incident/match.ts";
import { defineBuiltin } from "../../core/plugin.ts";
import {
  individual,
  individualIncidentPriority,
  individualIncidentType,
  individualTerm,
  service,
  teamIncidentPriority,
  teamIncidentType,
  teamTerm,
} from "../../drizzle/schema/index.ts";

/** The maximum for people, and for teams; the sum is the maximum size of an answer. */
const most = 250;
/** The maximum length of a name in an answer. */
const longestName = 200;

const people = {
  type: { owner: individualIncidentType.individualId, to: individualIncidentType.incidentTypeId },
  priority: {
    owner: individualIncidentPriority.individualId,
    to: individualIncidentPriority.incidentPriorityId,
  },
  term: { owner: individualTerm.individualId, to: individualTerm.termId },
};
const teams = {
  type: { owner: teamIncidentType.teamId, to: teamIncidentType.incidentTypeId },
  priority: { owner: teamIncidentPriority.teamId, to: teamIncidentPriority.incidentPriorityId },
  term: { owner: teamTerm.teamId, to: teamTerm.termId },
};

export default defineBuiltin({
  title: "Roster",
  slug: rosterSlug,
  version: "1.0.0",
  type: "participant",
  author: "svc",
  description: "Proposes people and teams by type, priority and terms, and finds who is on call by rotation",
  configSchema: Type.Object({}),
  inDatabase: true,
  create: (_config, { context }) => ({
    async resolve({ incident }) {
      const [individuals, proposed] = await Promise.all([
        matchIncident(context, incident, people, { limit: most }),
        matchIncident(context, incident, teams, { limit: most }),
      ]);
      return [
        ...individuals.map(({ id, reasons }) => ({ individual: { id }, reasons })),
        ...proposed.map(({ id, reasons }) => ({ team: { id }, reasons })),
      ];
    },
    async onCall({ service: { id }, at }) {
      const { db } = context;
      const [found] = await db
        .select({ rotation: rotationColumn(service.id) })
        .from(service)
        .where(eq(service.id, id));
      if (!found?.rotation) return null;
      const { members, ...turns } = found.rotation;
      const turn = onCall({ ...turns, members: members.length }, new Date(at));
      const member = turn === undefined ? undefined : members[turn];
      if (member === undefined) return null;
      const { name, email } = individual;
      const [person] = await db.select({ name, email }).from(individual).where(eq(individual.id, member));
      if (!person) return null;
      return { email: person.email, ...(person.name.length <= longestName && { name: person.name }) };
    },
  }),
});
