import { and, eq, type SQL, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { conversation, event, incident } from "../../drizzle/schema/index.ts";
import { deliver } from "../delivery/deliver.ts";
import { type EventKind, tell } from "../event.ts";
import { incidentFacts } from "../incident/facts.ts";
import type { IncidentStatus } from "../incident/transition.ts";
import type { ActivePlugin } from "../plugin/call.ts";
import type { ResourceFacts } from "../plugin/facts.ts";
import type { MethodAnswer } from "../plugin/methods.ts";
import { ask, keyFor, type StepRun } from "./ask.ts";
import { LeaseLost, writeAs } from "./lease.ts";
import { peopleOf } from "./people.ts";
import { planSteps } from "./plan.ts";
import { chosen, resourceFacts, takenByAnother } from "./resource.ts";
import { welcomeMessage } from "./welcome.ts";

/**
 * Opens the conversation of an incident with this plugin, adds who takes part, and says what it is about; nothing of that
 * in one that was archived since an earlier attempt.
 */
export async function openConversation(run: StepRun, slug: string): Promise<string> {
  const plugin = chosen(run, "conversation", slug);
  if (!(await find(run, slug))) {
    const made = await ask(run, plugin, "create", { incident: run.incident }, keyFor(run, "conversation"));
    await writeAs(run.context, run.claim, (tx) => keep(tx, run, slug, made)).catch(takenByAnother(slug));
  }
  // They are told who commands, and nobody is added twice.
  await run.behind("reported:participants", "reported:commander");
  const facts = await incidentFacts(run.context, run.incident.id);
  const row = await find(run, slug);
  if (!facts || !row) throw new LeaseLost();
  if (row.archivedAt === null) {
    await addEverybody(run, plugin, resourceFacts(facts, row));
    await welcome(run, plugin, resourceFacts(facts, row));
  }
  return "Conversation opened";
}

/**
 * A plugin that sends to each recipient by itself leaves that to the outbox, which knows who has it already: a step that is
 * tried again begins anew.
 */
async function welcome(
  run: StepRun,
  plugin: ActivePlugin<"conversation">,
  facts: ResourceFacts,
): Promise<void> {
  const { id: incidentId } = facts.incident;
  const message = welcomeMessage(facts.incident);
  if (plugin.methods.recipients === undefined) {
    await ask(run, plugin, "send", { conversation: facts, message }, keyFor(run, "conversation-welcome"));
    return;
  }
  const key = { task: "incident-welcome", what: `incident-${incidentId}`, whom: "conversation" };
  await writeAs(run.context, run.claim, (tx) =>
    deliver(tx, run.context, [{ key, incidentId, pluginSlug: plugin.slug, message }]),
  );
}

/** Adds who has joined since. */
export async function joinConversation(run: StepRun, slug: string): Promise<string | undefined> {
  const row = await find(run, slug);
  // Where none was made, whoever makes it adds everybody.
  if (!row || row.archivedAt !== null) return undefined;
  await addEverybody(run, chosen(run, "conversation", slug), resourceFacts(run.incident, row));
  return "Conversation follows who takes part";
}

/** Archives it, unless the incident was reopened meanwhile; if it is while the plugin is asked, it is opened again. */
export async function archiveConversation(run: StepRun, slug: string): Promise<string | undefined> {
  const row = await find(run, slug);
  if (!row || row.archivedAt !== null || run.incident.status !== "Closed") return undefined;
  await turn(run, slug, { row, method: "archive", archivedAt: run.context.clock.now() });
  return "Conversation archived";
}

/** Opens it again for who takes part now, unless the incident was closed again; if it is meanwhile, it is archived again. */
export async function reopenConversation(run: StepRun, slug: string): Promise<string | undefined> {
  const row = await find(run, slug);
  if (!row || run.incident.status === "Closed") return undefined;
  const plugin = chosen(run, "conversation", slug);
  if (plugin.methods.reopen === undefined)
    return `Conversation stays archived: ${slug} does not know how to reopen it`;
  // It is open already where an earlier attempt came no farther.
  if (row.archivedAt !== null) await turn(run, slug, { row, method: "reopen", archivedAt: null });
  await addEverybody(run, plugin, resourceFacts(run.incident, row));
  return "Conversation reopened";
}

type Row = NonNullable<Awaited<ReturnType<typeof find>>>;

/** Has it archived or opened again, and notes that; each time it is another thing. */
async function turn(
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
    if (isClosed === (archivedAt !== null)) return;
    const step = `${isClosed ? "closed" : "reopened"}:conversation:${slug}`;
    await planSteps(tx, { incidentId: row.incidentId, at: context.clock.now() }, [step]);
  });
}

/** As part of a key: none before the first time, and then how often. */
async function timesReopened({ context, incident: { id } }: StepRun): Promise<number[]> {
  const reopened = eq(event.kind, "incident.reopened" satisfies EventKind);
  const times = await context.db.$count(event, and(eq(event.incidentId, id), reopened));
  return times === 0 ? [] : [times];
}

async function find({ context, incident: { id } }: StepRun, slug: string) {
  const [row] = await context.db
    .select()
    .from(conversation)
    .where(and(eq(conversation.incidentId, id), eq(conversation.pluginSlug, slug)))
    .prepare("conversation")
    .execute();
  return row;
}

/** With the incident locked. Who closed it before there was a conversation has found none to archive. */
async function keep(
  tx: Transaction,
  { context, incident: { id: incidentId } }: StepRun,
  pluginSlug: string,
  { externalId, weblink }: MethodAnswer<"conversation", "create">,
): Promise<void> {
  const at = context.clock.now();
  const [made] = await tx
    .insert(conversation)
    .values({ incidentId, pluginSlug, externalId, weblink, createdAt: at })
    .returning({ id: conversation.id, status: statusOf(incidentId) });
  await tell(tx, {
    ...{ incidentId, at, actor: "system", source: pluginSlug, kind: "conversation.created" },
    ...{ description: `Conversation: ${weblink ?? pluginSlug}`, data: { conversation_id: made!.id } },
  });
  if (made!.status === "Closed")
    await planSteps(tx, { incidentId, at }, [`closed:conversation:${pluginSlug}`]);
}

function statusOf(id: number): SQL<IncidentStatus> {
  return sql`(select ${incident.status} from ${incident} where ${eq(incident.id, id)})`;
}

async function addEverybody(
  run: StepRun,
  plugin: ActivePlugin<"conversation">,
  facts: ResourceFacts,
): Promise<void> {
  const { active: people, participations } = await writeAs(run.context, run.claim, (tx) =>
    peopleOf(tx, run.incident.id),
  );
  if (people.length === 0) return;
  const key = keyFor(run, "conversation-add", ...participations.active);
  await ask(run, plugin, "add", { conversation: facts, people }, key);
}
