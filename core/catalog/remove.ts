import { and, eq } from "drizzle-orm";
import { Forbidden } from "../../platform/errors.ts";
import { audit } from "../audit.ts";
import type { Actor } from "../context.ts";
import type { AppContext } from "../plugin/context.ts";
import { getRecord } from "./get.ts";
import { unlessReferredTo } from "./reference.ts";
import { type CatalogTable, type Columns, noSuch, type Resource } from "./resource.ts";
import { unlessListed } from "./source.ts";

/**
 * Deletes a record with its related rows. Only admins may delete.
 *
 * @throws Forbidden before anything is looked up
 * @throws NotFound
 * @throws Conflict naming what refers to it, or the source that would restore it
 */
export async function removeRecord<T extends CatalogTable, C extends Columns, F extends object>(
  { db, clock, plugins }: AppContext,
  actor: Actor,
  resource: Resource<T, C, F>,
  { id, address }: { id: number; address: string },
): Promise<void> {
  const { one, many, table, present, deleted: action } = resource;
  if (!actor.admin) throw new Forbidden(`Only an admin can delete ${many}`);
  const deletion = { at: clock.now(), actor: actor.user, address };
  await db.transaction(async (tx) => {
    // The source of a record never changes.
    if (resource.listedBy) unlessListed(resource, await getRecord({ db: tx }, actor, resource, id), plugins);
    await resource.release?.(tx, id, deletion);
    const removal = tx
      .delete<CatalogTable>(table)
      .where(and(eq(table.id, id), present))
      .returning({ id: table.id });
    const [removed] = await unlessReferredTo(`This ${one}`, removal);
    if (!removed) throw noSuch(resource);
    await audit(tx, { ...deletion, action, subject: String(id) });
  });
}
