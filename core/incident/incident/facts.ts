import { and, eq, isNull, sql } from "drizzle-orm";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import {
  type document,
  incident,
  incidentPriority,
  incidentType,
  individual,
  term,
} from "../../../drizzle/schema/index.ts";
import { buildVocabularyBeside, type Vocabulary } from "../../catalog/search_words/match.ts";
import type { Context } from "../../context.ts";
import type { DocumentFacts, IncidentFacts } from "../../plugin/facts.ts";
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
const factsQuery = preparedQuery((db) =>
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

/** The terms that are looked for, put together. */
interface Terms {
  vocabulary: Vocabulary;
  texts: ReadonlyMap<number, string>;
}

interface Known {
  /** Of the table as it was read; until then, as whoever had it read has seen it. */
  mark: string;
  terms: Promise<Terms>;
  isUnderWay: boolean;
}

/**
 * Putting them together takes longer than asking them: kept for each database until a term is written, changed or gone.
 * Kept before they are there, for the steps of a flow ask at the same time.
 */
const vocabularies = new WeakMap<Context["db"], Known>();

async function termsIn(
  db: Context["db"],
  mark: string,
  text: string,
): Promise<{ id: number; text: string }[]> {
  const { texts, vocabulary } = await termsAt(db, mark);
  return vocabulary.find(text).map((id) => ({ id, text: texts.get(id)! }));
}

/** One reading at a time: terms that are written one after the other would each have one more begun. */
async function termsAt(db: Context["db"], mark: string): Promise<Terms> {
  const before = vocabularies.get(db);
  if (before?.isUnderWay && before.mark !== mark) await before.terms.catch(() => {});
  const now = vocabularies.get(db);
  // What has been begun since then knows of all that the mark does.
  if (now && (now !== before || now.mark === mark)) return now.terms;
  return readAnew(db, mark);
}

function readAnew(db: Context["db"], mark: string): Promise<Terms> {
  const read = async () => {
    try {
      return await readTerms(db, (seen) => {
        known.mark = seen;
      });
    } catch (error) {
      // Whoever asks next tries again.
      vocabularies.delete(db);
      throw error;
    } finally {
      known.isUnderWay = false;
    }
  };
  const known: Known = { mark, terms: read(), isUnderWay: true };
  vocabularies.set(db, known);
  return known.terms;
}

async function readTerms(db: Context["db"], tellMark: (mark: string) => void): Promise<Terms> {
  // With its own mark: what was written since the first one was read is among them.
  const terms = await db.select({ id: term.id, text: term.text, mark: termsMark }).from(term).where(isWanted);
  if (terms[0]) tellMark(terms[0].mark);
  const texts = new Map(terms.map((one) => [one.id, one.text]));
  return { vocabulary: await buildVocabularyBeside(terms), texts };
}
