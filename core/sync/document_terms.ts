import { sql } from "drizzle-orm";
import type { Transaction } from "../../drizzle/client.ts";
import { document, documentContent, documentTerm, term } from "../../drizzle/schema/index.ts";
import { sha256, toHex } from "../../platform/secret.ts";
import type { Vocabulary } from "../catalog/search_words/match.ts";
import { ownTextSlug, type TextPlace } from "../incident/document/texts.ts";

/** What was found in the text of a document. */
export interface Finding {
  documentId: number;
  /** SHA-256 of the text; null when there is none any more. */
  hash: Uint8Array | null;
  /** Ids, ascending. */
  termIds: number[];
}

/** Whether the terms of a document are those of this text and this vocabulary. */
export function isRead(
  place: Pick<TextPlace, "termContentHash" | "termVocabulary">,
  hash: Uint8Array | null,
  vocabulary: string,
): boolean {
  const read = place.termContentHash;
  if (place.termVocabulary !== vocabulary) return false;
  return read === null || hash === null ? read === hash : toHex(read) === toHex(hash);
}

/** Looks for terms in a text; null is a text that is gone, in which there are none. */
export function findTerms(documentId: number, text: string | null, vocabulary: Vocabulary): Finding {
  if (text === null) return { documentId, hash: null, termIds: [] };
  return { documentId, hash: sha256(text), termIds: vocabulary.find(text) };
}

/**
 * Links documents to the terms that were found in them, and to no others; what people have given them stays. Documents
 * and terms that are gone by now are passed over.
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
  // Of a text of our own, whoever writes it keeps its hash: this one may be older by now.
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
