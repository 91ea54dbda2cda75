import { sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { document, documentContent, documentTerm, term } from "../../drizzle/schema/index.ts";
import { sha256, toHex } from "../../platform/secret.ts";
import type { Vocabulary } from "../catalog/search_words/match.ts";
import { ownTextSlug, type TextPlace } from "../incident/document/texts.ts";

/** What was found in the text of a document. */
export interface Finding {
  documentId: number;
  /** The SHA-256 of the text. Null if it no longer exists. */
  hash: Uint8Array | null;
  /** Ids, ascending. */
  termIds: number[];
}

/** Whether the terms of a document are from this text and this vocabulary. */
export function isRead(
  place: Pick<TextPlace, "termContentHash" | "termVocabulary">,
  hash: Uint8Array | null,
  vocabulary: string,
): boolean {
  const read = place.termContentHash;
  if (place.termVocabulary !== vocabulary) return false;
  return read === null || hash === null ? read === hash : toHex(read) === toHex(hash);
}

/** Finds the terms in a text. Null is a deleted text, which has none. */
export function findTerms(documentId: number, text: string | null, vocabulary: Vocabulary): Finding {
  if (text === null) return { documentId, hash: null, termIds: [] };
  return { documentId, hash: sha256(text), termIds: vocabulary.find(text) };
}

/**
 * Links documents to exactly the terms that were found in them. Links made by people stay. Documents and terms that no
 * longer exist are skipped.
 */
export async function keepFindings(
  tx: Transaction,
  findings: readonly Finding[],
  vocabulary: string,
): Promise<void> {
  const rows = findings.map(({ documentId, hash }) => ({ id: documentId, hash: hash && toHex(hash) }));
  const pairs = findings.flatMap(({ documentId, termIds }) => termIds.map((id) => [documentId, id] as const));
  const [documents, terms] = [pairs.map(([id]) => id), pairs.map(([, id]) => id)];
  const ids = findings.map(({ documentId }) => documentId);
  await tx.execute(sql`
    select from ${document} where ${document.id} = any(${arrayOf(ids)}) order by ${document.id} for no key update`);
  await tx.execute(sql`
    delete from ${documentTerm} where ${documentTerm.source} = 'Found' and ${documentTerm.documentId} = any(${arrayOf(ids)})
      and (${documentTerm.documentId}, ${documentTerm.termId}) not in (
        select * from unnest(${arrayOf(documents)}, ${arrayOf(terms)}))`);
  await tx.execute(sql`
    with found as (select * from unnest(${arrayOf(documents)}, ${arrayOf(terms)}) as found (document_id, term_id)),
    there as (select id from ${term} where id = any(${arrayOf([...new Set(terms)])}) order by id for key share)
    insert into ${documentTerm} (document_id, term_id, source)
    select found.document_id, found.term_id, 'Found' from found
    join there on there.id = found.term_id join ${document} on ${document.id} = found.document_id
    on conflict do nothing`);
  // A text in our database has its own hash, which may be newer than this one.
  await tx.execute(sql`
    update ${document} set term_content_hash = decode(read.hash, 'hex'), term_vocabulary = ${vocabulary},
      content_hash = case when plugin_slug = ${ownTextSlug}
        then (select hash from ${documentContent} where document_id = read.id) else decode(read.hash, 'hex') end
    from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb) as read (id bigint, hash text)
    where ${document.id} = read.id`);
}

function arrayOf(ids: readonly number[]) {
  return sql`${`{${ids.join(",")}}`}::bigint[]`;
}
