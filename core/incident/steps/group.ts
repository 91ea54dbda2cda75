import { and, eq, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import { participantGroup } from "../../../drizzle/schema/index.ts";
import { LeaseLost } from "../../outbox/work.ts";
import type { ActivePlugin } from "../../plugin/call.ts";
import type { ResourceFacts } from "../../plugin/facts.ts";
import type { MethodAnswer } from "../../plugin/methods.ts";
import { writeAs } from "../flow/lease.ts";
import { recordEvent } from "../timeline/event.ts";
import { ask, keyFor, type StepRun } from "./ask.ts";
import { peopleOf, teamsOf } from "./people.ts";
import { chosen, resourceFacts, takenByAnother } from "./resource.ts";

/** Creates the group of an incident with this plugin, with the participants and the proposed teams. */
export async function makeGroup(run: StepRun, slug: string): Promise<string> {
  const plugin = chosen(run, "participant_group", slug);
  if (!(await find(run, slug))) {
    const { incident } = run;
    const name = incident.name.toLowerCase();
    const made = await ask(run, plugin, "create", { incident, name }, keyFor(run, "group"));
    await writeAs(run.context, run.claim, (tx) => keep(tx, run, slug, { ...made, name })).catch(
      takenByAnother(slug),
    );
  }
  await run.waitFor("reported:participants", "reported:commander");
  const row = await find(run, slug);
  if (!row) throw new LeaseLost();
  await addEverybody(run, plugin, resourceFacts(run.incident, row));
  return `Group created: ${row.email ?? row.name}`;
}

/** Adds people who have joined since, and removes those who have left. */
export async function joinGroup(run: StepRun, slug: string): Promise<string | undefined> {
  const row = await find(run, slug);
  // If there is none, the step that creates it adds everybody.
  if (!row) return undefined;
  const plugin = chosen(run, "participant_group", slug);
  const group = resourceFacts(run.incident, row);
  const { left, participations } = await addEverybody(run, plugin, group);
  if (left.length > 0) {
    const key = keyFor(run, "group-remove", ...participations.left);
    await ask(run, plugin, "remove", { group, people: left, teams: [] }, key);
  }
  return "Group members updated";
}

async function find({ context, incident: { id } }: StepRun, slug: string) {
  const [row] = await groupQuery(context.db).execute({ id, slug });
  return row;
}

const groupQuery = preparedQuery((db) =>
  db
    .select()
    .from(participantGroup)
    .where(
      and(
        eq(participantGroup.incidentId, sql.placeholder("id")),
        eq(participantGroup.pluginSlug, sql.placeholder("slug")),
      ),
    )
    .prepare("participant_group"),
);

async function keep(
  tx: Transaction,
  { context, incident: { id: incidentId } }: StepRun,
  pluginSlug: string,
  made: MethodAnswer<"participant_group", "create"> & { name: string },
): Promise<void> {
  const { name, externalId, email, weblink } = made;
  const at = context.clock.now();
  const [row] = await tx
    .insert(participantGroup)
    .values({ incidentId, pluginSlug, name, externalId, email, weblink, createdAt: at })
    .returning({ id: participantGroup.id });
  await recordEvent(tx, {
    incidentId,
    at,
    actor: "system",
    source: pluginSlug,
    kind: "group.created",
    description: `Group: ${email ?? name}`,
    data: { participant_group_id: row!.id },
  });
}

async function addEverybody(run: StepRun, plugin: ActivePlugin<"participant_group">, group: ResourceFacts) {
  const { id } = run.incident;
  const [people, teams] = await writeAs(run.context, run.claim, (tx) =>
    Promise.all([peopleOf(tx, id), teamsOf(tx, id)]),
  );
  if (people.active.length + teams.length > 0) {
    const { active } = people.participations;
    const key = keyFor(run, "group-add", ...active, "teams", ...teams.map(({ id }) => id));
    await ask(run, plugin, "add", { group, people: people.active, teams }, key);
  }
  return people;
}
