import { and, eq, exists, isNull, type SQL, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { conversation, incident } from "../../drizzle/schema/index.ts";
import { tell } from "../event.ts";
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
    const call = { conversation: resourceFacts(facts, row), message: welcomeMessage(facts) };
    await ask(run, plugin, "send", call, keyFor(run, "conversation-welcome"));
  }
  return "Conversation opened";
}

/** Adds who has joined since. */
export async function joinConversation(run: StepRun, slug: string): Promise<string | undefined> {
  const row = await find(run, slug);
  // Where none was made, whoever makes it adds everybody.
  if (!row || row.archivedAt !== null) return undefined;
  await addEverybody(run, chosen(run, "conversation", slug), resourceFacts(run.incident, row));
  return "Conversation follows who takes part";
}

/** Archives it, unless the incident was reopened meanwhile. */
export async function archiveConversation(run: StepRun, slug: string): Promise<string | undefined> {
  const row = await find(run, slug);
  if (!row || row.archivedAt !== null || run.incident.status !== "Closed") return undefined;
  const facts = resourceFacts(run.incident, row);
  await ask(
    run,
    chosen(run, "conversation", slug),
    "archive",
    { conversation: facts },
    keyFor(run, "conversation-archive"),
  );
  const archivedAt = run.context.clock.now();
  // It may have been reopened while the plugin was asked.
  const isClosed = exists(
    run.context.db
      .select({ id: incident.id })
      .from(incident)
      .where(and(eq(incident.id, row.incidentId), eq(incident.status, "Closed"))),
  );
  await writeAs(run.context, run.claim, (tx) =>
    tx
      .update(conversation)
      .set({ archivedAt })
      .where(and(eq(conversation.id, row.id), isNull(conversation.archivedAt), isClosed)),
  );
  return "Conversation archived";
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
