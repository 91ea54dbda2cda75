import { and, asc, count, eq, inArray, isNull, max, sum } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import {
  type document,
  incident,
  incidentPriority,
  incidentType,
  individual,
  participant,
  participantRole,
  term,
} from "../../drizzle/schema/index.ts";
import type { Context } from "../context.ts";
import type { DocumentFacts, IncidentFacts, PersonFacts } from "../plugin/facts.ts";
import { buildVocabulary, type Vocabulary } from "../term/match.ts";

/** Columns of an individual, as plugins are told of a person. */
export const personFacts = { id: individual.id, name: individual.name, email: individual.email };

/** What plugins are told of an incident, whoever may read it; undefined when it is gone. */
export async function incidentFacts(
  context: Pick<Context, "db" | "config">,
  incidentId: number,
): Promise<IncidentFacts | undefined> {
  const { db, config } = context;
  const [found] = await db
    .select({
      ...{ id: incident.id, name: incident.name, title: incident.title, description: incident.description },
      ...{ status: incident.status, visibility: incident.visibility, reportedAt: incident.reportedAt },
      type: { id: incidentType.id, name: incidentType.name },
      priority: { id: incidentPriority.id, name: incidentPriority.name, rank: incidentPriority.rank },
    })
    .from(incident)
    .innerJoin(incidentType, eq(incidentType.id, incident.incidentTypeId))
    .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
    .where(eq(incident.id, incidentId));
  if (!found) return undefined;
  const [reporter, commander] = await Promise.all([
    holderOf(context, incidentId, "reporter"),
    holderOf(context, incidentId, "commander"),
  ]);
  return {
    ...found,
    terms: await termsIn(context, `${found.title}\n${found.description}`),
    reportedAt: found.reportedAt.toISOString(),
    weblink: `${config.publicUrl}/incidents/${found.id}`,
    ...(reporter && { reporter }),
    ...(commander && { commander }),
  };
}

/** Who commands now, or who reported it, also when they have left. */
async function holderOf(
  { db }: Pick<Context, "db">,
  incidentId: number,
  role: "reporter" | "commander",
): Promise<PersonFacts | undefined> {
  const [holder] = await db
    .select(personFacts)
    .from(participantRole)
    .innerJoin(participant, eq(participant.id, participantRole.participantId))
    .innerJoin(individual, eq(individual.id, participant.individualId))
    .where(
      and(
        eq(participantRole.incidentId, incidentId),
        eq(participantRole.role, role),
        role === "commander" ? isNull(participantRole.renouncedAt) : undefined,
      ),
    )
    .orderBy(asc(participantRole.id))
    .limit(1);
  return holder;
}

/** As its plugin knows it; undefined for one whose text is with no plugin. */
export function documentFacts(
  row: Pick<typeof document.$inferSelect, "id" | "name" | "resourceType" | "resourceId" | "weblink">,
): DocumentFacts | undefined {
  const { id, name, resourceType, resourceId, weblink } = row;
  if (resourceId === null) return undefined;
  return { id, name, resourceType, resourceId, ...(weblink !== null && { weblink }) };
}

/** Building one takes longer than asking it: kept for each database until a term is written, changed or gone. */
const vocabularies = new WeakMap<Context["db"], { mark: string; vocabulary: Vocabulary }>();

async function termsIn({ db }: Pick<Context, "db">, text: string): Promise<{ id: number; text: string }[]> {
  const wanted = and(eq(term.discoverable, true), isNull(term.deletedAt));
  // Each change counts a version up, ids are never used again: other terms have another mark.
  const total = (column: PgColumn) => sum(column).mapWith(String);
  const [seen] = await db
    .select({
      ...{ count: count(), ids: total(term.id), versions: total(term.version) },
      updatedAt: max(term.updatedAt),
    })
    .from(term)
    .where(wanted);
  const mark = JSON.stringify(seen);
  let known = vocabularies.get(db);
  if (known?.mark !== mark) {
    const terms = await db.select({ id: term.id, text: term.text }).from(term).where(wanted);
    known = { mark, vocabulary: buildVocabulary(terms) };
    vocabularies.set(db, known);
  }
  const ids = known.vocabulary.find(text);
  if (ids.length === 0) return [];
  return await db
    .select({ id: term.id, text: term.text })
    .from(term)
    .where(inArray(term.id, ids))
    .orderBy(asc(term.id));
}
