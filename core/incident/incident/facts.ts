import { and, eq, isNull, sql } from "drizzle-orm";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import {
  type document,
  incident,
  incidentPriority,
  incidentType,
  term,
} from "../../../drizzle/schema/index.ts";
import { buildVocabularyBeside, type Vocabulary } from "../../catalog/search_words/match.ts";
import type { Context } from "../../context.ts";
import type { DocumentFacts, IncidentFacts } from "../../plugin/facts.ts";
import { commanderNow, reporterOf } from "./holder.ts";

/** Returns the facts of an incident for plugins, without checking permissions. Undefined if it is gone. */
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

/** Returns the facts of a document for its plugin. Undefined if no plugin stores its text. */
export function documentFacts(
  row: Pick<typeof document.$inferSelect, "id" | "name" | "resourceType" | "resourceId" | "weblink">,
): DocumentFacts | undefined {
  const { id, name, resourceType, resourceId, weblink } = row;
  if (resourceId === null) return undefined;
  return { id, name, resourceType, resourceId, ...(weblink !== null && { weblink }) };
}

const isWanted = and(eq(term.discoverable, true), isNull(term.deletedAt));
/** Each change increments a version and ids are never reused, so different terms have different marks. */
const termsMark = sql<string>`(
  select concat_ws(' ', count(*), sum(${term.id}), sum(${term.version}), max(${term.updatedAt}))
  from ${term} where ${isWanted})`;

/** A single statement, because each step of a flow needs it. */
const factsQuery = preparedQuery((db) =>
  db
    .select({
      id: incident.id,
      name: incident.name,
      title: incident.title,
      description: incident.description,
      status: incident.status,
      visibility: incident.visibility,
      reportedAt: incident.reportedAt,
      type: { id: incidentType.id, name: incidentType.name },
      priority: { id: incidentPriority.id, name: incidentPriority.name, rank: incidentPriority.rank },
      reporter: reporterOf,
      commander: commanderNow,
      mark: termsMark,
    })
    .from(incident)
    .innerJoin(incidentType, eq(incidentType.id, incident.incidentTypeId))
    .innerJoin(incidentPriority, eq(incidentPriority.id, incident.incidentPriorityId))
    .where(eq(incident.id, sql.placeholder("id")))
    .prepare("incident_facts"),
);

/** The wanted terms and their vocabulary. */
interface Terms {
  vocabulary: Vocabulary;
  texts: ReadonlyMap<number, string>;
}

interface Known {
  /** The mark of the table as it was read. Until then, the mark that the caller saw. */
  mark: string;
  terms: Promise<Terms>;
  isUnderWay: boolean;
}

/** Transactions that use the vocabulary of their database. */
const databases = new WeakMap<Context["db"], Context["db"]>();

/** Lets a transaction use the vocabulary that is kept for its database. */
export function shareTerms(tx: Context["db"], db: Context["db"]): void {
  databases.set(tx, db);
}

/**
 * Building a vocabulary takes longer than reading the mark, so it is kept for each database until a term is added,
 * changed or deleted. The promise is kept, because the steps of a flow ask at the same time.
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

/** One reading at a time: otherwise terms that are added one after the other would each start one. */
async function termsAt(db: Context["db"], mark: string): Promise<Terms> {
  const of = databases.get(db) ?? db;
  const before = vocabularies.get(of);
  if (before?.isUnderWay && before.mark !== mark) await before.terms.catch(() => {});
  const now = vocabularies.get(of);
  // A reading that has begun since then knows everything that the mark covers.
  if (now && (now !== before || now.mark === mark)) return now.terms;
  return readAnew(db, of, mark);
}

function readAnew(db: Context["db"], of: Context["db"], mark: string): Promise<Terms> {
  const read = async () => {
    try {
      return await readTerms(db, (seen) => {
        known.mark = seen;
      });
    } catch (error) {
      // The next caller tries again.
      vocabularies.delete(of);
      throw error;
    } finally {
      known.isUnderWay = false;
    }
  };
  const known: Known = { mark, terms: read(), isUnderWay: true };
  vocabularies.set(of, known);
  return known.terms;
}

async function readTerms(db: Context["db"], tellMark: (mark: string) => void): Promise<Terms> {
  // Uses the mark of this read: it covers what was written since the first mark was read.
  const terms = await db.select({ id: term.id, text: term.text, mark: termsMark }).from(term).where(isWanted);
  if (terms[0]) tellMark(terms[0].mark);
  const texts = new Map(terms.map((one) => [one.id, one.text]));
  return { vocabulary: await buildVocabularyBeside(terms), texts };
}
