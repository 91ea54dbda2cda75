import { and, asc, eq, isNull } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import { term } from "../../../drizzle/schema/index.ts";
import { sha256Hex } from "../../../platform/secret.ts";
import { buildVocabulary, type Vocabulary } from "./match.ts";

/** Counted up when the same terms are found in other places than before: then all texts are to be read again. */
const rules = 2;

/** The terms that are looked for now, put together; `name` is another for other terms, and the same for the same. */
export async function readVocabulary(
  db: Pick<Database, "select">,
): Promise<{ name: string; vocabulary: Vocabulary }> {
  const terms = await db
    .select({ id: term.id, text: term.text })
    .from(term)
    .where(and(eq(term.discoverable, true), isNull(term.deletedAt)))
    .orderBy(asc(term.id));
  return { name: `${rules}-${sha256Hex(JSON.stringify(terms))}`, vocabulary: buildVocabulary(terms) };
}
