import { and, asc, eq, isNull } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";
import { term } from "../../../drizzle/schema/index.ts";
import { sha256Hex } from "../../../platform/secret.ts";
import { buildVocabulary, type Vocabulary } from "./match.ts";

/** Incremented when the same terms match at other places than before: all texts are then searched again. */
const rules = 2;

/** Returns the current terms as a vocabulary. `name` identifies the set of terms. */
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
