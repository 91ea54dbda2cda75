import { Type } from "@sinclair/typebox";
import { and, asc, eq, inArray, or, sql } from "drizzle-orm";
import type { Context } from "../../core/context.ts";
import { mailingListSlug } from "../../core/incident/participant/addresses.ts";
import { defineBuiltin, type PersonFacts, type TeamFacts } from "../../core/plugin.ts";
import { individual, participantGroup, participantGroupMember, team } from "../../drizzle/schema/index.ts";
import { Conflict } from "../../platform/errors.ts";

/** The maximum size of an answer. */
const mostMembers = 10_000;
const longestName = 200;

interface Who {
  people: readonly PersonFacts[];
  teams: readonly TeamFacts[];
}

/**
 * The group of an incident, in our database. It has no address: the mail plugin writes to its people and to the
 * addresses of its teams.
 */
export default defineBuiltin({
  title: "Mailing list",
  slug: mailingListSlug,
  version: "1.0.0",
  type: "participant_group",
  author: "svc",
  description: "Keeps the participants and teams of an incident in svc's database, for the mail plugin",
  configSchema: Type.Object({}),
  inDatabase: true,
  create: (_config, { context }) => ({
    create: () => ({}),
    async add({ group, ...who }) {
      await addMembers(context, await groupOf(context, group.incident.id), who);
    },
    async remove({ group, ...who }) {
      await removeMembers(context, await groupOf(context, group.incident.id), who);
    },
    async members({ group }) {
      return await listMembers(context, await groupOf(context, group.incident.id));
    },
  }),
});

/** @throws Conflict if the incident has no such group */
async function groupOf({ db }: Context, incidentId: number): Promise<number> {
  const [found] = await db
    .select({ id: participantGroup.id })
    .from(participantGroup)
    .where(
      and(eq(participantGroup.incidentId, incidentId), eq(participantGroup.pluginSlug, mailingListSlug)),
    );
  if (!found) throw new Conflict("This incident has no mailing list");
  return found.id;
}

async function addMembers({ db, clock }: Context, participantGroupId: number, { people, teams }: Who) {
  const addedAt = clock.now();
  const members = [
    ...people.map(({ id }) => ({ participantGroupId, addedAt, individualId: id, teamId: null })),
    ...teams.map(({ id }) => ({ participantGroupId, addedAt, individualId: null, teamId: id })),
  ];
  if (members.length > 0) await db.insert(participantGroupMember).values(members).onConflictDoNothing();
}

async function removeMembers({ db }: Context, groupId: number, { people, teams }: Who) {
  const { participantGroupId, individualId, teamId } = participantGroupMember;
  const ids = (who: readonly { id: number }[]) => who.map(({ id }) => id);
  await db
    .delete(participantGroupMember)
    .where(
      and(
        eq(participantGroupId, groupId),
        or(inArray(individualId, ids(people)), inArray(teamId, ids(teams))),
      ),
    );
}

/** The addresses of people, and of teams that have one. */
async function listMembers({ db }: Context, groupId: number) {
  const { participantGroupId, individualId, teamId, id } = participantGroupMember;
  const rows = await db
    .select({
      email: sql<string>`coalesce(${individual.email}, ${team.email})`,
      name: sql<string>`coalesce(${individual.name}, ${team.name})`,
    })
    .from(participantGroupMember)
    .leftJoin(individual, eq(individual.id, individualId))
    .leftJoin(team, eq(team.id, teamId))
    .where(
      and(eq(participantGroupId, groupId), sql`coalesce(${individual.email}, ${team.email}) is not null`),
    )
    .orderBy(asc(id))
    .limit(mostMembers);
  return rows.map(({ email, name }) => ({ email, ...(name.length <= longestName && { name }) }));
}
