import { and, eq, ne, type SQL, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import { conversation, delivery, event, flowStep, incident } from "../../../drizzle/schema/index.ts";
import { Refused, Unavailable } from "../../../platform/errors.ts";
import { literally } from "../../../platform/markdown.ts";
import type { Context } from "../../context.ts";
import { restrictedStep } from "../../outbox/conversations.ts";
import { deliver } from "../../outbox/deliver.ts";
import { LeaseLost, Postponed } from "../../outbox/work.ts";
import type { ActivePlugin } from "../../plugin/call.ts";
import type { IncidentFacts, Message, ResourceFacts } from "../../plugin/facts.ts";
import type { MethodAnswer } from "../../plugin/methods.ts";
import { writeAs } from "../flow/lease.ts";
import { planSteps } from "../flow/plan.ts";
import { incidentFacts } from "../incident/facts.ts";
import type { Visibility } from "../incident/incident.ts";
import type { IncidentStatus } from "../incident/transition.ts";
import { announceReopened } from "../message/announce.ts";
import { becameRestricted, type EventKind, recordEvent } from "../timeline/event.ts";
import { ask, keyFor, type StepRun } from "./ask.ts";
import { type People, peopleOf } from "./people.ts";
import { chosen, resourceFacts, takenByAnother } from "./resource.ts";

/**
 * Opens the conversation of an incident with this plugin, adds the participants and sends the welcome. If it was
 * archived since an earlier attempt, it adds and sends nothing.
 */
export async function openConversation(run: StepRun, slug: string): Promise<string> {
  const plugin = chosen(run, "conversation", slug);
  if (!(await find(run, slug))) {
    const made = await ask(run, plugin, "create", { incident: run.incident }, keyFor(run, "conversation"));
    await writeAs(run.context, run.claim, (tx) => keep(tx, run, slug, made)).catch(takenByAnother(slug));
  }
  // So that the welcome names the commander, and nobody is added twice.
  await run.waitFor("reported:participants", "reported:commander");
  const [facts, row] = await Promise.all([incidentFacts(run.context, run.incident.id), find(run, slug)]);
  if (!facts || !row) throw new LeaseLost();
  if (row.archivedAt === null) {
    await addEverybody(run, plugin, resourceFacts(facts, row), await readPeople(run));
    if (facts.visibility === "Restricted") await mustBeRestricted(run, slug);
    await welcome(run, plugin, resourceFacts(facts, row));
  }
  return "Conversation opened";
}

/** Before all other messages, even those that were written while the conversation was being opened. */
export const welcomeSequence = 0;

/**
 * If a plugin sends to each recipient separately, the outbox does it, because it knows who got the welcome already: a
 * retried step starts from the beginning.
 */
async function welcome(
  run: StepRun,
  plugin: ActivePlugin<"conversation">,
  facts: ResourceFacts,
): Promise<void> {
  const { id: incidentId } = facts.incident;
  const message = welcomeMessage(facts.incident);
  const { reportedAt: occurredAt } = facts.incident;
  if (plugin.methods.recipients === undefined) {
    const sent = { conversation: facts, message, occurredAt, sequence: welcomeSequence };
    await ask(run, plugin, "send", sent, keyFor(run, "conversation-welcome"));
    return;
  }
  const key = { task: "incident-welcome", what: `incident-${incidentId}`, whom: "conversation" };
  await writeAs(run.context, run.claim, (tx) =>
    deliver(tx, run.context, [
      {
        key,
        incidentId,
        pluginSlug: plugin.slug,
        occurredAt: new Date(occurredAt),
        sequence: welcomeSequence,
        message,
      },
    ]),
  );
}

/** Adds people who have joined since, and removes those who have left, even from an archived conversation. */
export async function joinConversation(run: StepRun, slug: string): Promise<string | undefined> {
  const row = await find(run, slug);
  // If there is none, the step that creates it adds everybody.
  if (!row) return undefined;
  const plugin = chosen(run, "conversation", slug);
  const facts = resourceFacts(run.incident, row);
  const people = await readPeople(run);
  if (row.archivedAt === null) await addEverybody(run, plugin, facts, people);
  const { left, participations } = people;
  if (left.length === 0) return row.archivedAt === null ? "Conversation members updated" : undefined;
  if (plugin.methods.remove === undefined)
    return `${slug} cannot remove people from a conversation: those who left may still read it`;
  const key = keyFor(run, "conversation-remove", ...participations.left);
  await ask(run, plugin, "remove", { conversation: facts, people: left }, key);
  return "Conversation members updated";
}

/** Restricts it to the participants, unless the incident is Open again. @throws Refused if that is impossible */
export async function restrictConversation(run: StepRun, slug: string): Promise<string | undefined> {
  const row = await find(run, slug);
  if (!row || run.incident.visibility === "Open") return undefined;
  const plugin = chosen(run, "conversation", slug);
  if (plugin.methods.restrict === undefined)
    throw new Refused(
      `${slug} cannot restrict a conversation: nothing more is sent to it while the incident is Restricted`,
    );
  const { active: people } = await readPeople(run);
  const key = keyFor(run, "conversation-restrict", await countEvents(run.context.db, run, becameRestricted));
  await ask(run, plugin, "restrict", { conversation: resourceFacts(run.incident, row), people }, key);
  return "Conversation restricted";
}

/** Archives it, unless the incident was reopened. If that happens during the plugin call, it is opened again. */
export async function archiveConversation(run: StepRun, slug: string): Promise<string | undefined> {
  const row = await find(run, slug);
  if (!row || row.archivedAt !== null || run.incident.status !== "Closed") return undefined;
  await postponeIfQueued(run, slug);
  await setArchived(run, slug, { row, method: "archive", archivedAt: run.context.clock.now() });
  return "Conversation archived";
}

/** Messages from before the closing must still be delivered. @throws Postponed */
async function postponeIfQueued({ context: { db }, incident: { id } }: StepRun, slug: string): Promise<void> {
  const waits = and(eq(delivery.incidentId, id), eq(delivery.pluginSlug, slug), eq(delivery.state, "Queued"));
  if ((await db.$count(delivery, waits)) > 0) throw new Postponed();
}

/**
 * Reopens it for the current participants, unless the incident was closed again. If that happens meanwhile, it is
 * archived again.
 */
export async function reopenConversation(run: StepRun, slug: string): Promise<string | undefined> {
  const row = await find(run, slug);
  if (!row || run.incident.status === "Closed") return undefined;
  const plugin = chosen(run, "conversation", slug);
  if (plugin.methods.reopen === undefined) return `Conversation stays archived: ${slug} cannot reopen it`;
  // It is already open if an earlier attempt got this far.
  if (row.archivedAt !== null) await setArchived(run, slug, { row, method: "reopen", archivedAt: null });
  return "Conversation reopened";
}

type Row = NonNullable<Awaited<ReturnType<typeof find>>>;

/** Archives or reopens it, and records that. Each time it is a new operation. */
async function setArchived(
  run: StepRun,
  slug: string,
  { row, method, archivedAt }: { row: Row; method: "archive" | "reopen"; archivedAt: Date | null },
): Promise<void> {
  const { context, claim, incident: facts } = run;
  const which = row.archivedAt ? [row.archivedAt.toISOString()] : await timesReopened(run);
  const key = keyFor(run, `conversation-${method}`, ...which);
  const input = { conversation: resourceFacts(facts, row) };
  await ask(run, chosen(run, "conversation", slug), method, input, key);
  await writeAs(context, claim, async (tx) => {
    const [now] = await tx
      .update(conversation)
      .set({ archivedAt })
      .where(eq(conversation.id, row.id))
      .returning({ status: statusOf(row.incidentId) });
    const isClosed = now?.status === "Closed";
    const steps = [
      ...(isClosed === (archivedAt !== null) ? [] : [isClosed ? "closed" : "reopened"]),
      // Done by the step that also removes: a separate addition could finish after the removal of somebody who left
      // meanwhile.
      ...(archivedAt === null ? ["joined"] : []),
    ].map((on) => `${on}:conversation:${slug}`);
    await planSteps(tx, { incidentId: row.incidentId, at: context.clock.now() }, steps);
    if (archivedAt !== null || isClosed) return;
    const time = await countEvents(tx, run, reopened);
    await announceReopened(tx, context, facts, { pluginSlug: slug, time });
  });
}

const reopened = eq(event.kind, "incident.reopened" satisfies EventKind);

/** How many such events the timeline has. */
async function countEvents(db: Context["db"], { incident: { id } }: StepRun, what: SQL): Promise<number> {
  return await db.$count(event, and(eq(event.incidentId, id), what));
}

/** As part of a key: empty before the first time, and then the count. */
async function timesReopened(run: StepRun): Promise<number[]> {
  const times = await countEvents(run.context.db, run, reopened);
  return times === 0 ? [] : [times];
}

/** @throws Unavailable while non-participants may read it */
async function mustBeRestricted({ context: { db }, incident: { id } }: StepRun, slug: string): Promise<void> {
  const open = and(
    eq(flowStep.incidentId, id),
    eq(flowStep.step, restrictedStep(slug)),
    ne(flowStep.state, "Done"),
  );
  if ((await db.$count(flowStep, open)) > 0)
    throw new Unavailable("The conversation is not yet restricted to its participants");
}

async function find({ context, incident: { id } }: StepRun, slug: string) {
  const [row] = await conversationQuery(context.db).execute({ id, slug });
  return row;
}

const conversationQuery = preparedQuery((db) =>
  db
    .select()
    .from(conversation)
    .where(
      and(
        eq(conversation.incidentId, sql.placeholder("id")),
        eq(conversation.pluginSlug, sql.placeholder("slug")),
      ),
    )
    .prepare("conversation"),
);

/** The incident must be locked. A closing before there was a conversation found none to archive. */
async function keep(
  tx: Transaction,
  { context, incident: { id: incidentId, visibility: asked } }: StepRun,
  pluginSlug: string,
  { externalId, weblink }: MethodAnswer<"conversation", "create">,
): Promise<void> {
  const at = context.clock.now();
  const [made] = await tx
    .insert(conversation)
    .values({ incidentId, pluginSlug, externalId, weblink, createdAt: at })
    .returning({
      id: conversation.id,
      status: statusOf(incidentId),
      visibility: visibilityOf(incidentId),
    });
  await recordEvent(tx, {
    incidentId,
    at,
    actor: "system",
    source: pluginSlug,
    kind: "conversation.created",
    description: `Conversation: ${weblink ?? pluginSlug}`,
    data: { conversation_id: made!.id },
  });
  const steps = [
    ...(made!.status === "Closed" ? ["closed"] : []),
    ...(asked === "Open" && made!.visibility === "Restricted" ? ["restricted"] : []),
  ].map((on) => `${on}:conversation:${pluginSlug}`);
  await planSteps(tx, { incidentId, at }, steps);
}

function statusOf(id: number): SQL<IncidentStatus> {
  return sql`(select ${incident.status} from ${incident} where ${eq(incident.id, id)})`;
}

function visibilityOf(id: number): SQL<Visibility> {
  return sql`(select ${incident.visibility} from ${incident} where ${eq(incident.id, id)})`;
}

async function readPeople(run: StepRun): Promise<People> {
  return await writeAs(run.context, run.claim, (tx) => peopleOf(tx, run.incident.id));
}

async function addEverybody(
  run: StepRun,
  plugin: ActivePlugin<"conversation">,
  facts: ResourceFacts,
  { active: people, participations }: People,
): Promise<void> {
  if (people.length === 0) return;
  // The same people are added again each time that the conversation was reopened.
  const which = [...participations.active, ...(await timesReopened(run)).map((times) => `reopened ${times}`)];
  await ask(run, plugin, "add", { conversation: facts, people }, keyFor(run, "conversation-add", ...which));
}

/** The first message in a conversation. */
export function welcomeMessage(facts: IncidentFacts): Message {
  const { name, title, type, priority, weblink, reporter, commander } = facts;
  const lines = [
    `Type: ${literally(type.name)}, priority: ${literally(priority.name)}`,
    ...(reporter ? [`Reporter: ${literally(reporter.name)}`] : []),
    commander ? `Commander: ${literally(commander.name)}` : "No commander yet",
    weblink,
  ];
  return { subject: `${name}: ${title}`, text: lines.join("\n\n") };
}
