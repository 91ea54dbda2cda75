import type { Actor, Context } from "../../core/context.ts";
import { getDocument } from "../../core/incident/document/get.ts";
import { NotFound } from "../../platform/errors.ts";
import { incidentPath } from "../paths.ts";

/** What may still have the words of a redacted entry. */
export interface Remains {
  /** Conversation plugins that were sent the text, by slug. */
  plugins: readonly string[];
  documents: readonly { id: number; name: string }[];
}

/** Enough for an address. The form has listed all of them. */
const mostListed = 100;

/** Where the result of a redaction leads. The words are gone, so nobody can find again which documents have them. */
export function remainsPath(incidentId: number, entry: number, { plugins, documents }: Remains): string {
  const query = new URLSearchParams();
  for (const slug of plugins) query.append("plugin", slug);
  for (const { id } of documents.slice(0, mostListed)) query.append("document", String(id));
  return `${incidentPath(incidentId)}/redacted/${entry}?${query}`;
}

/** The documents among these that belong to the incident, and still exist. */
export async function readDocuments(
  context: Context,
  actor: Actor,
  { incidentId, ids }: { incidentId: number; ids: readonly number[] },
): Promise<Remains["documents"]> {
  const reading = ids.slice(0, mostListed).map((id) =>
    getDocument(context, actor, id).catch((error) => {
      if (error instanceof NotFound) return undefined;
      throw error;
    }),
  );
  const found = await Promise.all(reading);
  return found.flatMap((one) => (one?.incidentId === incidentId ? [one] : []));
}
