import { and, asc, eq, isNotNull, isNull, sql } from "drizzle-orm";
import type { Transaction } from "../../../drizzle/client.ts";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import { document, incident, incidentTypeTemplate } from "../../../drizzle/schema/index.ts";
import { SvcError, Unavailable } from "../../../platform/errors.ts";
import { nameLength } from "../../../platform/text.ts";
import { LeaseLost } from "../../outbox/work.ts";
import type { ActivePlugin, Outcome } from "../../plugin/call.ts";
import type { IncidentFacts } from "../../plugin/facts.ts";
import type { MethodAnswer } from "../../plugin/methods.ts";
import { writeAs } from "../flow/lease.ts";
import { documentFacts, incidentFacts } from "../incident/facts.ts";
import { recordEvent } from "../timeline/event.ts";
import { askEach, keyFor, type StepRun } from "./ask.ts";
import { isTaken } from "./resource.ts";

/** A document that the incident should have. */
interface Wanted {
  resourceType: string;
  template?: Pick<
    typeof document.$inferSelect,
    "id" | "name" | "resourceType" | "pluginSlug" | "resourceId" | "weblink"
  >;
}

type Row = { id: number; name: string; resourceId: string | null };

/**
 * Creates the documents of an incident of its type with the first document plugin: one for each template, and always
 * the incident's own. Returns how many it created, and what went wrong.
 */
export async function makeDocuments(run: StepRun): Promise<{ made: number; failures: string[] }> {
  const { context, incident: before } = run;
  const failures: string[] = [];
  const [plugin] = context.plugins.ofType("document");
  let made = 0;
  if (!plugin) return { made, failures };
  // The text names the commander.
  await run.waitFor("reported:participants", "reported:commander");
  const [facts, documents] = await Promise.all([incidentFacts(context, before.id), wantedOf(run)]);
  if (!facts) throw new LeaseLost();
  for (const wanted of documents) {
    try {
      if (await make(run, plugin, facts, wanted)) made += 1;
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      failures.push(error.detail);
    }
  }
  return { made, failures };
}

async function wantedOf({ context, incident: { id: incidentId } }: StepRun): Promise<Wanted[]> {
  const templates: Wanted[] = await templatesQuery(context.db).execute({ incidentId });
  const own = templates.some((one) => one.resourceType === "incident");
  return own ? templates : [{ resourceType: "incident" }, ...templates];
}

const templatesQuery = preparedQuery((db) => {
  const { id, name, resourceType, pluginSlug, resourceId, weblink } = document;
  return db
    .select({
      resourceType: incidentTypeTemplate.resourceType,
      template: { id, name, resourceType, pluginSlug, resourceId, weblink },
    })
    .from(incident)
    .innerJoin(incidentTypeTemplate, eq(incidentTypeTemplate.incidentTypeId, incident.incidentTypeId))
    .innerJoin(document, eq(document.id, incidentTypeTemplate.documentId))
    .where(eq(incident.id, sql.placeholder("incidentId")))
    .orderBy(asc(incidentTypeTemplate.resourceType))
    .prepare("wanted_documents");
});

/** @returns whether it has created one @throws Unavailable */
async function make(
  run: StepRun,
  plugin: ActivePlugin<"document">,
  facts: IncidentFacts,
  { resourceType, template }: Wanted,
): Promise<boolean> {
  const { context, claim } = run;
  const text = template && documentFacts(template);
  if (template && (template.pluginSlug !== plugin.slug || !text))
    throw new Unavailable(`The text of the template ${template.name} is not stored in ${plugin.slug}`);
  const kind = resourceType === "incident" ? "" : ` ${resourceType}`;
  const name = `${facts.name}${kind}: ${facts.title}`.slice(0, nameLength).toWellFormed();
  const row = await writeAs(context, claim, (tx) => rowFor(tx, run, plugin.slug, { resourceType, name }));
  if (row.resourceId !== null) return false;
  const call = {
    document: { id: row.id, name: row.name, resourceType },
    name: row.name,
    incident: facts,
    variables: variablesOf(facts),
    author: "system",
    ...(text && { template: text }),
  };
  const key = keyOfText(run, resourceType);
  const [outcome] = await askEach(run, [plugin], "create", call, key);
  const settled = await writeAs(context, claim, (tx) => settle(tx, run, plugin.slug, row, outcome!)).catch(
    async (error: unknown) => {
      if (!isTaken(error)) throw error;
      await writeAs(context, claim, (tx) => discard(tx, row));
      throw new Unavailable(`${plugin.slug} returned the text of another document`, { cause: error });
    },
  );
  if (!outcome!.ok) throw new Unavailable(outcome!.detail);
  return settled;
}

/**
 * Our record of the document. It is created before the text, which may be stored under our id. Without a resource id it
 * is waiting for the plugin. No document that a person adds looks like that.
 */
async function rowFor(
  tx: Transaction,
  { context, incident: { id: incidentId } }: StepRun,
  pluginSlug: string,
  { resourceType, name }: { resourceType: string; name: string },
): Promise<Row> {
  const columns = { id: document.id, name: document.name, resourceId: document.resourceId };
  const [found] = await tx
    .select({ ...columns, keptWith: document.pluginSlug })
    .from(document)
    .where(
      and(
        eq(document.incidentId, incidentId),
        eq(document.resourceType, resourceType),
        isNotNull(document.pluginSlug),
      ),
    )
    .orderBy(isNull(document.resourceId), asc(document.id))
    .limit(1);
  if (found && found.resourceId === null && found.keptWith !== pluginSlug)
    await tx.update(document).set({ pluginSlug }).where(eq(document.id, found.id));
  if (found) return found;
  const at = context.clock.now();
  const [made] = await tx
    .insert(document)
    .values({ name, resourceType, pluginSlug, incidentId, createdAt: at, updatedAt: at })
    .returning(columns);
  return made!;
}

/**
 * Records where the text is. If the plugin has refused, the record is deleted, since it has no text. If the plugin may
 * have created the text anyway (no answer in time), the record stays for the next attempt, which has the same key.
 * Returns whether there is a document now: an admin may have deleted the record during the plugin call.
 */
async function settle(
  tx: Transaction,
  { context, incident: { id: incidentId } }: StepRun,
  pluginSlug: string,
  row: Row,
  outcome: Outcome<MethodAnswer<"document", "create">>,
): Promise<boolean> {
  if (!outcome.ok) {
    if (outcome.reason !== "timeout") await discard(tx, row);
    return false;
  }
  const { resourceId, weblink = null } = outcome.value;
  const at = context.clock.now();
  const [settled] = await tx
    .update(document)
    .set({ resourceId, weblink, updatedAt: at, version: sql`${document.version} + 1` })
    .where(and(eq(document.id, row.id), isNull(document.resourceId)))
    .returning({ id: document.id });
  if (!settled) return false;
  await recordEvent(tx, {
    incidentId,
    at,
    actor: "system",
    source: pluginSlug,
    kind: "document.created",
    description: `Document added: ${row.name}`,
    data: { document_id: row.id },
  });
  return true;
}

async function discard(tx: Transaction, { id }: Row): Promise<void> {
  await tx.delete(document).where(and(eq(document.id, id), isNull(document.resourceId)));
}

/** The key is the same, whichever caller creates a text of an incident. */
export function keyOfText(of: Parameters<typeof keyFor>[0], resourceType: string): string {
  return keyFor(of, "document", resourceType);
}

/** The values of `{{name}}` in a template. */
function variablesOf(facts: IncidentFacts): Record<string, string> {
  const { name, title, description, type, priority, commander, reporter, weblink, reportedAt } = facts;
  return {
    name,
    title,
    description,
    type: type.name,
    priority: priority.name,
    commander: commander?.name ?? "",
    reporter: reporter?.name ?? "",
    weblink,
    reported_at: reportedAt,
  };
}
