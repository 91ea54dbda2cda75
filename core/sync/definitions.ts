import { and, eq, inArray, notExists, sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { definition, definitionTerm, term } from "../../drizzle/schema/index.ts";
import type { TermItem } from "../plugin/methods.ts";
import type { Kept } from "./keep.ts";
import { type Unwritten, writeInParts } from "./savepoints.ts";

type Item = Pick<TermItem, "externalId" | "definitions">;

/** A definition of a term, by their ids in the source. */
export interface Meaning {
  term: string;
  definition: string;
}

/** Our definitions of a source: their texts by id, and what they define. */
export interface Definitions {
  texts: ReadonlyMap<string, string>;
  meanings: readonly Meaning[];
}

export interface DefinitionsDifference {
  /** New, or with another text. */
  written: { externalId: string; text: string }[];
  added: Meaning[];
  removed: Meaning[];
}

/**
 * Compares our definitions with the terms that their source lists. Terms that it does not list keep theirs, in case
 * they come back. If two terms have different texts for one definition, the first counts.
 */
export function definitionsDifference(kept: Definitions, items: readonly Item[]): DefinitionsDifference {
  const key = ({ term, definition }: Meaning) => JSON.stringify([term, definition]);
  const listed = new Set(items.map(({ externalId }) => externalId));
  const texts = new Map<string, string>();
  const wanted = new Map<string, Meaning>();
  for (const { externalId, definitions } of items) {
    for (const one of definitions) {
      if (!texts.has(one.externalId)) texts.set(one.externalId, one.text);
      const meaning = { term: externalId, definition: one.externalId };
      wanted.set(key(meaning), meaning);
    }
  }
  const known = new Set(kept.meanings.map(key));
  return {
    written: [...texts]
      .filter(([externalId, text]) => kept.texts.get(externalId) !== text)
      .map(([externalId, text]) => ({ externalId, text })),
    added: [...wanted.values()].filter((meaning) => !known.has(key(meaning))),
    removed: kept.meanings.filter((meaning) => listed.has(meaning.term) && !wanted.has(key(meaning))),
  };
}

/**
 * Gives the existing terms of a source the definitions that it lists. Definitions that no term uses any more are
 * deleted. What people have written about the same terms is left alone.
 */
export async function keepDefinitions(
  tx: Transaction,
  { source, items, at }: { source: string; items: readonly Item[]; at: Date },
): Promise<Kept> {
  const { kept, definitionIds, termIds } = await readDefinitions(tx, source);
  const { written, added, removed } = definitionsDifference(kept, items);
  const changed = new Set([...added, ...removed].map((meaning) => meaning.definition));
  const version = sql`${definition.version} + 1`;
  const unwritten = await writeInParts(tx, written, async (inner, part) => {
    const rows = part.map((values) => ({ ...values, source, createdAt: at, updatedAt: at }));
    const made = await inner
      .insert(definition)
      .values(rows)
      .onConflictDoUpdate({
        target: [definition.source, definition.externalId],
        set: { text: sql`excluded.text`, version, updatedAt: at },
      })
      .returning({ id: definition.id, externalId: definition.externalId });
    for (const { id, externalId } of made) if (externalId !== null) definitionIds.set(externalId, id);
  });
  const fresh = new Set(written.map(({ externalId }) => externalId));
  const relinked = [...changed].filter((externalId) => !fresh.has(externalId));
  const unmarked = await writeInParts(tx, relinked, (inner, part) =>
    inner
      .update(definition)
      .set({ version, updatedAt: at })
      .where(and(eq(definition.source, source), inArray(definition.externalId, part))),
  );
  const rowsOf = (meanings: Meaning[]) =>
    meanings.flatMap((meaning) => {
      const [definitionId, termId] = [definitionIds.get(meaning.definition), termIds.get(meaning.term)];
      return definitionId === undefined || termId === undefined ? [] : [{ ...meaning, definitionId, termId }];
    });
  const notUnlinked = await writeInParts(tx, rowsOf(removed), (inner, part) => {
    const [definitions, terms] = [part.map((one) => one.definitionId), part.map((one) => one.termId)];
    const pairs = sql`unnest(${sql.param(definitions)}::bigint[], ${sql.param(terms)}::bigint[])`;
    const pair = sql`(${definitionTerm.definitionId}, ${definitionTerm.termId})`;
    // Not a list of pairs, each of which would be compared with each row.
    return inner.delete(definitionTerm).where(sql`${pair} in (select * from ${pairs})`);
  });
  const notLinked = await writeInParts(tx, rowsOf(added), (inner, part) =>
    inner
      .insert(definitionTerm)
      .values(part.map(({ definitionId, termId }) => ({ definitionId, termId })))
      .onConflictDoNothing(),
  );
  const defined = new Set(kept.meanings.map((meaning) => meaning.definition));
  const mayBeUnused = removed.length > 0 || defined.size < kept.texts.size;
  const undeleted = mayBeUnused ? await deleteUnused(tx, source) : undefined;
  const idsOf = (why: keyof Unwritten<unknown>) => {
    const ids = [...unwritten[why].map(({ externalId }) => externalId), ...unmarked[why]];
    const others = [...notUnlinked[why], ...notLinked[why]].map((meaning) => meaning.definition);
    return [...new Set([...ids, ...others, ...(undeleted?.[why] ?? [])])];
  };
  const failed = [unwritten, unmarked].flatMap(({ refused, locked }) => [...refused, ...locked]);
  const done = written.length + relinked.length - failed.length;
  return { done, refused: idsOf("refused"), locked: idsOf("locked") };
}

async function readDefinitions(tx: Transaction, source: string) {
  const definitions = await tx
    .select({ id: definition.id, externalId: definition.externalId, text: definition.text })
    .from(definition)
    .where(eq(definition.source, source));
  const terms = await tx
    .select({ id: term.id, externalId: term.externalId })
    .from(term)
    .where(eq(term.source, source));
  // Joined here: if the statistics are from when the tables were small, PostgreSQL compares every term with every
  // definition, which takes minutes for some ten thousand.
  const ours = sql`array(select ${definition.id} from ${definition} where ${definition.source} = ${source})`;
  const links = await tx
    .select()
    .from(definitionTerm)
    .where(sql`${definitionTerm.definitionId} = any(${ours})`);
  const byId = (rows: { id: number; externalId: string | null }[]) =>
    new Map(rows.map(({ id, externalId }) => [id, externalId ?? ""]));
  const [definitionOf, termOf] = [byId(definitions), byId(terms)];
  return {
    kept: {
      texts: new Map(definitions.map(({ externalId, text }) => [externalId ?? "", text])),
      meanings: links.flatMap(({ definitionId, termId }) => {
        const [definition, term] = [definitionOf.get(definitionId), termOf.get(termId)];
        return definition === undefined || term === undefined ? [] : [{ term, definition }];
      }),
    },
    definitionIds: new Map([...definitionOf].map(([id, externalId]) => [externalId, id])),
    termIds: new Map([...termOf].map(([id, externalId]) => [externalId, id])),
  };
}

/** @returns the ids of those that could not be deleted, which the next sync retries */
async function deleteUnused(tx: Transaction, source: string): Promise<Unwritten<string>> {
  const uses = tx
    .select({ one: sql`1` })
    .from(definitionTerm)
    .where(eq(definitionTerm.definitionId, definition.id));
  const isUnused = and(eq(definition.source, source), notExists(uses));
  const unused = await tx.select({ externalId: definition.externalId }).from(definition).where(isUnused);
  const ids = unused.map(({ externalId }) => externalId ?? "");
  return writeInParts(tx, ids, (inner, part) =>
    inner.delete(definition).where(and(isUnused, inArray(definition.externalId, part))),
  );
}
