import { and, eq, getTableColumns, isNull, or, sql } from "drizzle-orm";
import { definitionTerm, documentTerm, individualTerm, teamTerm, term } from "../../drizzle/schema/index.ts";
import { Forbidden } from "../../platform/errors.ts";
import { parseName } from "../../platform/text.ts";
import { linkedIds, toDefinition } from "./link.ts";
import { releaseFromDefinitions } from "./release.ts";
import { byText, listOf, type Resource } from "./resource.ts";
import { comesFromSource, lockSource } from "./source.ts";

const { search, deletedAt, ...row } = getTableColumns(term);
const definitions = { owner: definitionTerm.termId, to: definitionTerm.definitionId, target: toDefinition };
const columns = { ...row, definitionIds: linkedIds(definitions, term.id) };

/** As in called.ts: with another text, its people would be called into other incidents. */
const callsNobody = sql`not exists (select from ${individualTerm} where ${individualTerm.termId} = ${term.id})
  and not exists (select from ${teamTerm} where ${teamTerm.termId} = ${term.id})`;

/** The meaning of a term is in its definitions, which name their terms. */
export type TermFields = Pick<typeof term.$inferSelect, "text" | "discoverable">;

export const terms: Resource<typeof term, typeof columns, TermFields> = {
  one: "term",
  many: "terms",
  table: term,
  columns,
  list: listOf("terms", term, { text: term.text }),
  filters: { source: byText("source", term.source), text: byText("text", term.text) },
  present: isNull(deletedAt),
  writers: "members",
  deleted: "term.deleted",
  taken: { term_own_text_idx: "Another term has this text" },
  parse: ({ text, discoverable }) => ({ text: parseName("text", text), discoverable }),
  // Each installation decides which words are too common, not the source.
  may: (actor, { text }) =>
    or(eq(term.text, text), and(isNull(term.source), actor.admin ? undefined : callsNobody)),
  whyNot: (item) =>
    item.source === null
      ? new Forbidden("Only an admin can change the text of a term for which somebody is called")
      : comesFromSource("term", item),
  listedBy: "term",
  release: async (tx, id, deletion) => {
    const [found] = await tx.select({ source: term.source }).from(term).where(eq(term.id, id));
    // Before the term, like term-sync.
    if (found?.source) await lockSource(tx, found.source);
    // The term before what names it, like everyone who links to it: otherwise the two could deadlock.
    await tx.select({ id: term.id }).from(term).where(eq(term.id, id)).for("update");
    // Found by the worker, which does not prevent the deletion.
    await tx.delete(documentTerm).where(and(eq(documentTerm.termId, id), eq(documentTerm.source, "Found")));
    if (found?.source) await releaseFromDefinitions(tx, { id, source: found.source, deletion });
  },
};
