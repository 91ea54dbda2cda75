import { and, asc, desc, eq, isNotNull, isNull, notInArray, or, sql } from "drizzle-orm";
import { event, incident, individual } from "../../../drizzle/schema/index.ts";
import { Conflict } from "../../../platform/errors.ts";
import { nameLength } from "../../../platform/text.ts";
import type { Actor } from "../../context.ts";
import { largestLimit } from "../../list/page.ts";
import type { AppContext } from "../../plugin/context.ts";
import { getAffected } from "../affected/affected.ts";
import { type DocumentText, getContent, longestContent, putContent } from "../document/content.ts";
import { createDocument } from "../document/create.ts";
import { listDocuments } from "../document/list.ts";
import { postmortemType } from "../document/texts.ts";
import { eventColumns } from "../event/list.ts";
import { getIncident, type IncidentDetail } from "../incident/get.ts";
import { lockIncident } from "../incident/lock.ts";
import { listParticipants } from "../participant/list.ts";
import { listTasks } from "../task/list.ts";
import type { Task } from "../task/task.ts";
import { recordEvent } from "../timeline/event.ts";
import { isSaid } from "../timeline/fold.ts";
import { maySee } from "../visibility/see.ts";
import {
  type ChangedEntry,
  citedIn,
  type Drafted,
  draftable,
  draftedOf,
  draftOf,
  emptySections,
  type Facts,
  type Gap,
  gapsOf,
  type Happening,
  type News,
  newsOf,
  outdatedIn,
  thatFit,
  withNews,
} from "./draft.ts";

/** Of what people did and said; the newest of more. */
const mostHappenings = 2000;
/** The oldest of more. */
const mostTasks = 2000;

/** A post-mortem: the document, and what its writers may look at next. */
export interface Postmortem {
  incident: IncidentDetail;
  /** Null before it is drafted; `text` is then what the draft would be. */
  documentId: number | null;
  text: string;
  version: string | null;
  /** What the text does not have. */
  news: News;
  gaps: Gap[];
  /** Sections that nobody has written. */
  empty: string[];
  /** Entries that it cites, and whose earlier words it may still have; without those. */
  outdated: Omit<ChangedEntry, "text">[];
}

/**
 * Returns an incident's post-mortem.
 *
 * @throws NotFound when the actor may not read the incident
 * @throws Unavailable when the plugin that keeps its text fails
 */
export async function getPostmortem(
  context: AppContext,
  actor: Actor,
  incidentId: number,
): Promise<Postmortem> {
  const facts = await factsOf(context, actor, incidentId);
  return reviewed(context, actor, facts, await findText(context, actor, incidentId));
}

export interface Drafting {
  incidentId: number;
  /** The ids of the entries to add; by default all that are new. */
  entries?: readonly number[];
  /** Whether missing sections are added, as they are by default. */
  sections?: boolean;
}

/**
 * Drafts it from the timeline, roles, reports, messages, tasks, impact and cost, as a document of the incident. Of one that
 * was drafted before, it adds what is new and has room, and changes nothing else.
 *
 * @throws NotFound when the actor may not read the incident
 * @throws Conflict when its text was changed meanwhile, has no room for more, or no document plugin is enabled
 * @throws Unavailable when the plugin that keeps its text fails
 */
export async function draftPostmortem(
  context: AppContext,
  actor: Actor,
  { incidentId, entries, sections = true }: Drafting,
): Promise<Postmortem> {
  const at = context.clock.now();
  const facts = await factsOf(context, actor, incidentId);
  const found = await findText(context, actor, incidentId);
  // Also after a first attempt that made the document and not its text.
  if (!found || found.text.trim() === "") {
    const whole = draftable(facts);
    const text = draftOf(whole);
    // Before anything is created.
    if (text.length > longestContent) throw noRoom();
    const { id, version } = found ?? { id: await create(context, actor, facts), version: null };
    const drafted = draftedOf(whole, { at, isWhole: true });
    const written = await putContent(context, actor, {
      ...{ id, version, text, before: found?.text, data: { drafted } },
      check: (db) => refuseRemoved(db, whole),
    });
    await recordDraft(context, actor, { incidentId, documentId: id });
    return reviewed(context, actor, facts, { id, ...written, drafted: [drafted], createdAt: at });
  }
  const { id, version, text: before } = found;
  const news = newsOf(before, without(facts, id), found.drafted);
  const chosen = {
    happenings: news.happenings.filter(({ eventId }) => entries?.includes(eventId) ?? true),
    tasks: news.tasks,
    sections: sections ? news.sections : [],
  };
  const { length } = withNews(before, facts, { ...chosen, happenings: [], tasks: [] });
  const wanted = { ...chosen, ...thatFit(length, facts, chosen) };
  const text = withNews(before, facts, wanted);
  const isFull = wanted.happenings.length + wanted.tasks.length === 0;
  if (text.length > longestContent || (isFull && chosen.happenings.length + chosen.tasks.length > 0))
    throw noRoom();
  const drafted = draftedOf(wanted, { at, isWhole: false });
  const written =
    text === before
      ? found
      : await putContent(context, actor, {
          ...{ id, text, version, before, data: { drafted } },
          check: (db) => refuseRemoved(db, { ...facts, happenings: wanted.happenings }),
        });
  await recordDraft(context, actor, { incidentId, documentId: id });
  return reviewed(context, actor, facts, { ...found, ...written, drafted: [...found.drafted, drafted] });
}

const noRoom = () =>
  new Conflict("The post-mortem has no room for more: shorten its text, or the description");

/** Tasks that were found in its own text are in it already. */
const without = (facts: Facts, id: number): Facts => ({
  ...facts,
  tasks: facts.tasks.filter(({ documentId }) => documentId !== id),
});

async function reviewed(
  context: AppContext,
  actor: Actor,
  facts: Facts,
  found: FoundText | undefined,
): Promise<Postmortem> {
  const text = found?.text ?? draftOf(draftable(facts));
  const changed = found ? await changedOf(context, actor, facts.incident.id, text) : [];
  return {
    incident: facts.incident,
    documentId: found?.id ?? null,
    text,
    version: found?.version ?? null,
    news: found
      ? newsOf(text, without(facts, found.id), found.drafted)
      : { happenings: [], tasks: [], sections: [] },
    gaps: gapsOf(facts),
    empty: emptySections(text),
    outdated: found
      ? outdatedIn(text, facts, { changed, drafted: found.drafted, created: found.createdAt }).map(
          ({ text: _, ...one }) => one,
        )
      : [],
  };
}

/**
 * Refuses a text whose words were removed since they were read: who removed them was not told of it.
 *
 * @throws Conflict
 */
async function refuseRemoved(
  db: AppContext["db"],
  { incident: { id, description, resolution }, happenings }: Facts,
): Promise<void> {
  const ids = happenings.map(({ eventId }) => eventId);
  const isRemoved = or(isNotNull(event.withdrawnAt), isNotNull(event.redactedAt));
  const removed = await db.$count(event, and(sql`${event.id} = any(${sql.param(ids)}::bigint[])`, isRemoved));
  const [now] = await db
    .select({ description: incident.description, resolution: incident.resolution })
    .from(incident)
    .where(eq(incident.id, id));
  if (removed > 0 || now?.description !== description || now.resolution !== resolution)
    throw new Conflict("The incident's texts were changed while it was drafted: draft it again");
}

/** Two who draft it at once make one document: the other one waits, and finds it. */
async function create(context: AppContext, actor: Actor, { incident }: Facts): Promise<number> {
  return context.db.transaction(async (tx) => {
    await lockIncident(tx, actor, incident.id);
    const within = { ...context, db: tx };
    const known = await findDocument(within, actor, incident.id);
    if (known)
      throw new Conflict("Somebody else has drafted this post-mortem at the same time: look at theirs");
    const name = `${incident.name} post-mortem: ${incident.title}`.slice(0, nameLength).toWellFormed();
    const { id } = await createDocument(within, actor, {
      name,
      description: "",
      resourceType: postmortemType,
      weblink: null,
      incidentId: incident.id,
      pluginSlug: null,
      resourceId: null,
    });
    return id;
  });
}

/** Once: a template may have made the document before. */
async function recordDraft(
  { db, clock }: AppContext,
  actor: Actor,
  { incidentId, documentId }: { incidentId: number; documentId: number },
): Promise<void> {
  const kind = "postmortem.drafted";
  await db.transaction(async (tx) => {
    await lockIncident(tx, actor, incidentId);
    if ((await tx.$count(event, and(eq(event.incidentId, incidentId), eq(event.kind, kind)))) > 0) return;
    const data = { document_id: documentId };
    const description = "Post-mortem drafted";
    await recordEvent(tx, { incidentId, at: clock.now(), actor: actor.user, kind, description, data });
  });
}

async function findDocument(context: AppContext, actor: Actor, incidentId: number) {
  const { items } = await listDocuments(context, actor, {
    incidentId,
    resourceType: postmortemType,
    sort: "id",
    limit: 20,
  });
  // One that is only a link has no text to work with.
  return items.find(({ weblink, resourceId }) => weblink === null || resourceId !== null);
}

/** The text of a document, and what was drafted into it since it was empty, oldest first. */
interface FoundText extends DocumentText {
  id: number;
  createdAt: Date;
  drafted: Drafted[];
}

/** Undefined before it is drafted. */
async function findText(
  context: AppContext,
  actor: Actor,
  incidentId: number,
): Promise<FoundText | undefined> {
  const found = await findDocument(context, actor, incidentId);
  if (!found) return undefined;
  const { id, resourceId, createdAt } = found;
  if (resourceId === null) return { id, createdAt, drafted: [], text: "", version: null };
  const content = await getContent(context, actor, id);
  // After the text, so that all that was drafted into it is known. An empty text is drafted anew, and has nothing of it.
  const isEmpty = content.text.trim() === "";
  const drafted = isEmpty ? [] : await draftedInto(context, actor, { incidentId, id });
  return { id, createdAt, ...content, drafted };
}

async function draftedInto(
  { db }: AppContext,
  actor: Actor,
  { incidentId, id }: { incidentId: number; id: number },
): Promise<Drafted[]> {
  const rows = await db
    .select({ drafted: sql<Omit<Drafted, "at"> & { at: string }>`${event.data} -> 'drafted'` })
    .from(event)
    .where(
      and(
        eq(event.incidentId, incidentId),
        maySee(actor, incidentId),
        eq(event.kind, "document.updated"),
        sql`${event.data} -> 'document_id' = to_jsonb(${id}::bigint)`,
        sql`${event.data} #> '{drafted,entries}' is not null`,
      ),
    )
    .orderBy(asc(event.id));
  const since = rows.findLastIndex(({ drafted }) => drafted.isWhole);
  return rows.slice(Math.max(since, 0)).map(({ drafted }) => ({ ...drafted, at: new Date(drafted.at) }));
}

/** @throws NotFound */
async function factsOf(context: AppContext, actor: Actor, incidentId: number): Promise<Facts> {
  const incident = await getIncident(context, actor, incidentId);
  // Checked once for all of these.
  const reader = { ...actor, sees: incidentId };
  const [newest, people, tasks, affected] = await Promise.all([
    happeningsOf(context, actor, incidentId),
    listParticipants(context, reader, { incidentId, limit: largestLimit }),
    tasksOf(context, reader, incidentId),
    getAffected(context, reader, incidentId),
  ]);
  return {
    ...{ incident, affected, people: people.items, tasks: tasks.slice(0, mostTasks) },
    happenings: newest.slice(-mostHappenings),
    more: {
      happenings: newest.length > mostHappenings,
      tasks: tasks.length > mostTasks,
      people: people.next_cursor !== null,
    },
    publicUrl: context.config.publicUrl,
  };
}

/** More than `mostTasks` if there are more. */
async function tasksOf(context: AppContext, reader: Actor, incidentId: number): Promise<Task[]> {
  const tasks: Task[] = [];
  let cursor: string | undefined;
  do {
    const page = await listTasks(context, reader, { incidentId, limit: largestLimit, sort: "id", cursor });
    tasks.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && tasks.length <= mostTasks);
  return tasks;
}

/**
 * What people did and said, in order of time, without what was withdrawn or redacted: the newest `mostHappenings`, and one
 * more if there are more.
 */
async function happeningsOf({ db }: AppContext, actor: Actor, incidentId: number): Promise<Happening[]> {
  const { id, at, description, kind } = eventColumns;
  const rows = await db
    .select({
      ...{ eventId: id, at, text: description, kind },
      who: sql<string>`coalesce(${individual.name}, ${event.actor})`,
    })
    .from(event)
    .leftJoin(individual, eq(individual.email, event.actor))
    .where(
      and(
        eq(event.incidentId, incidentId),
        maySee(actor, incidentId),
        notInArray(event.actor, ["system", "worker"]),
        isNull(event.withdrawnAt),
        isNull(event.redactedAt),
        // The people are in the table, and the writing about it is no part of what happened.
        sql`${kind} !~ '^(participant\\..*|corrected|withdrawn|redacted|postmortem\\..*|document\\..*)$'`,
        sql`(${kind} not like 'role.%' or ${event.data} ->> 'role' is distinct from 'participant')`,
        sql`(${kind} <> 'role.assumed' or (${followsJoining}) is not true)`,
      ),
    )
    .orderBy(desc(event.at), desc(event.id))
    .limit(mostHappenings + 1);
  return rows.reverse().map(({ kind, ...row }) => ({ ...row, isSaid: isSaid({ kind }) }));
}

/** Whether the event before it is that the same person joined: who joins gets a role, as in `folded`. */
const followsJoining = sql`
  select before.kind = 'participant.joined' and before.data -> 'participant_id' = ${event.data} -> 'participant_id'
  from ${event} as before
  where before.incident_id = ${event.incidentId} and (before.at, before.id) < (${event.at}, ${event.id})
  order by before.at desc, before.id desc limit 1`;

/** The entries that a text cites, and that were corrected, withdrawn or redacted. */
async function changedOf(
  { db }: AppContext,
  actor: Actor,
  incidentId: number,
  text: string,
): Promise<ChangedEntry[]> {
  const cited = citedIn(text, incidentId);
  if (cited.length === 0) return [];
  const { id, description, editedAt, withdrawnAt, redactedAt } = eventColumns;
  const rows = await db
    .select({
      ...{ id, description, editedAt, withdrawnAt, redactedAt },
      who: sql<string>`coalesce(${individual.name}, ${event.editedBy})`,
    })
    .from(event)
    .leftJoin(individual, eq(individual.email, event.editedBy))
    .where(
      and(
        eq(event.incidentId, incidentId),
        maySee(actor, incidentId),
        isNotNull(event.editedAt),
        sql`${event.id} = any(${sql.param(cited)}::bigint[])`,
      ),
    )
    .orderBy(asc(event.at), asc(event.id));
  return rows.map(({ id, description, editedAt, withdrawnAt, redactedAt, who }) => ({
    eventId: id,
    change: redactedAt ? "redacted" : withdrawnAt ? "withdrawn" : "corrected",
    ...{ who, at: editedAt!, text: description },
  }));
}
