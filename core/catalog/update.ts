import { and, eq } from "drizzle-orm";
import { Changed } from "../../platform/errors.ts";
import type { Actor, Context } from "../context.ts";
import { getRecord } from "./get.ts";
import { type CatalogTable, type Columns, type Item, mayWrite, type Resource } from "./resource.ts";
import { unlessTaken } from "./taken.ts";

/**
 * Replaces a record with its related rows.
 *
 * @throws Forbidden when only admins may write it, or the changed values
 * @throws InvalidInput
 * @throws NotFound
 * @throws Conflict when it is no longer at `version`, comes from a source, or another record has a value that must be
 * unique
 */
export async function updateRecord<T extends CatalogTable, C extends Columns, F extends object>(
  { db, clock }: Context,
  actor: Actor,
  resource: Resource<T, C, F>,
  { id, version, fields }: { id: number; version: number; fields: F },
): Promise<Item<C>> {
  mayWrite(resource, actor);
  const values = resource.parse(fields);
  const { one, table, present, taken } = resource;
  return db.transaction(async (tx) => {
    if (resource.guard) resource.guard(actor, fields, await getRecord({ db: tx }, actor, resource, id));
    await resource.prepare?.(tx, fields);
    const update = tx
      .update<CatalogTable>(table)
      .set({ ...values, version: version + 1, updatedAt: clock.now() })
      .where(
        and(
          eq(table.id, id),
          eq(table.version, version),
          present,
          resource.seen?.(actor),
          resource.may?.(actor, values),
        ),
      )
      .returning({ id: table.id });
    const [updated] = await unlessTaken(taken, update);
    if (!updated) {
      const now = await getRecord({ db: tx }, actor, resource, id);
      if (now.version === version && resource.whyNot) throw resource.whyNot(now);
      throw new Changed(one, now.version);
    }
    await resource.keep?.(tx, id, fields);
    return getRecord({ db: tx }, actor, resource, id);
  });
}
