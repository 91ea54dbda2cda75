import { and, eq, isNull, sql } from "drizzle-orm";
import {
  type document,
  incident,
  incidentPriority,
  incidentType,
  individual,
  term,
} from "../../drizzle/schema/index.ts";
import type { Context } from "../context.ts";
import { kept } from "../kept.ts";
import type { DocumentFacts, IncidentFacts } from "../plugin/facts.ts";
import { buildVocabulary, type Vocabulary } from "../term/match.ts";
import { commanderNow, reporterOf } from "./holder.ts";

/** Columns of an individual, as plugins are told of a person. */
export const personFacts = { id: individual.id, name: individual.name, email: individual.email };

/** What plugins are told of an incident, whoever may read it; undefined when it is gone. */
export async function incidentFacts(
  { db, config }: Pick<Context, "db" | "config">,
  incidentId: number,
): Promise<IncidentFacts | undefined> {
  const [found] = await factsQuery(db).execute({ id: incidentId });
  if (!found) return undefined;
  const { mark, reporter, commander, ...facts } = found;
  return {
    ...facts,
    terms: await termsIn(db, mark, `${facts.title}\n${facts.description}`),
    reportedAt: facts.reportedAt.toISOString(),
    weblink: `${config.publicUrl}/incidents/${facts.id}`,
    ...(reporter && { reporter }),
    ...(commander && { commander }),
  };
}

/** As its plugin knows it; undefined for one whose text is with no plugin. */
export function documentFacts(
  row: Pick<typeof document.$inferSelect, "id" | "name" | "resourceType" | "resourceId" | "weblink">,
): DocumentFacts | undefined {
  const { id, name, resourceType, resourceId, weblink } = row;
  if (resourceId === null) return undefined;
  return { id, name, resourceType, resourceId, ...(weblink !== null && { weblink }) };
}

const isWanted = and(eq(term.discoverable, true), isNull(term.deletedAt));
/** Each change counts a version up, ids are never used again: other terms have another mark. */
const termsMark = sql<string>`(
  select concat_ws(' ', count(*), sum(${term.id}), sum(${term.version}), max(${term.updatedAt}))
  from ${term} where ${isWanted})`;

/** One statement, for each step of a flow asks. */
const factsQuery = kept((db) =>
  db
    .select({
      ...{ id: incident.id, name: incident.name, title: incident.title, description: incident.description },
      ...{ status: incident.status, visibility: incident.visibility, reportedAt: incident.reportedAt },
      type: { id: incidentType.id, name: incidentType.name },
      priority: { id: incidentPriority.id, name: incidentPriority.name, rank: incidentPriority.rank },
      ...{ reporter: reporterOf, commander: commanderNow, mark: termsMark },
    })
    .from(incident)
    .innerJoin(incidentType, eq(incidentType.id, incident.incidentTypeId))
    .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
    .where(eq(incident.id, sql.placeholder("id")))
    .prepare("incident_facts"),
);

/** Building one takes longer than asking it: kept for each database until a term is written, changed or gone. */
const vocabularies = new WeakMap<
  Context["db"],
  { mark: string; vocabulary: Vocabulary; texts: ReadonlyMap<number, string> }
>();

async function termsIn(
  db: Context["db"],
  mark: string,
  text: string,
): Promise<{ id: number; text: string }[]> {
  let known = vocabularies.get(db);
  if (known?.mark !== mark) {
    // With its own mark: what was written since the first one was read is among them.
    const terms = await db
      .select({ id: term.id, text: term.text, mark: termsMark })
      .from(term)
      .where(isWanted);
    const texts = new Map(terms.map((one) => [one.id, one.text]));
    known = { mark: terms[0]?.mark ?? mark, vocabulary: buildVocabulary(terms), texts };
    vocabularies.set(db, known);
  }
  const { texts, vocabulary } = known;
  return vocabulary.find(text).map((id) => ({ id, text: texts.get(id)! }));
}
