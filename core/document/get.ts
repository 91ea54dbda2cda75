import { and, eq } from "drizzle-orm";
import { document } from "../../drizzle/schema/index.ts";
import type { Actor, Context } from "../context.ts";
import { mayReadOf } from "../incident/visibility.ts";
import { type Document, documentColumns, noSuchDocument } from "./document.ts";

/** @throws NotFound also when the actor may not read it */
export async function getDocument({ db }: Context, actor: Actor, id: number): Promise<Document> {
  const [found] = await db
    .select(documentColumns)
    .from(document)
    .where(and(eq(document.id, id), mayReadOf(actor, document.incidentId)));
  if (!found) throw noSuchDocument();
  return found;
}
