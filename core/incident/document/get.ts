import { and, eq, sql } from "drizzle-orm";
import { document } from "../../../drizzle/schema/index.ts";
import type { Actor, Context } from "../../context.ts";
import { mayReadOf, preparedForReaders } from "../visibility/visibility.ts";
import { type Document, documentColumns, noSuchDocument } from "./document.ts";

/** @throws NotFound also when the actor may not read it */
export async function getDocument({ db }: Context, actor: Actor, id: number): Promise<Document> {
  const [found] = await documentQuery(db, actor).execute({ id, reader: actor.user });
  if (!found) throw noSuchDocument();
  return found;
}

const documentQuery = preparedForReaders((db, reader) =>
  db
    .select(documentColumns)
    .from(document)
    .where(and(eq(document.id, sql.placeholder("id")), mayReadOf(reader, document.incidentId)))
    .prepare("get_document"),
);
