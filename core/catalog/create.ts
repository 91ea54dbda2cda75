import { not } from "drizzle-orm";
import { Conflict } from "../../platform/errors.ts";
import type { Actor, Context } from "../context.ts";
import { getRecord } from "./get.ts";
import { type CatalogTable, type Columns, type Item, mayWrite, type Resource } from "./resource.ts";
import { unlessTaken } from "./taken.ts";

/**
 * Creates a record of a resource, with its related rows.
 *
 * @throws Forbidden when only admins may write it or some of its values
 * @throws InvalidInput
 * @throws Conflict when another record has a value that must be unique
 */
export async function createRecord<T extends CatalogTable, C extends Columns, F extends object>(
  { db, clock }: Context,
  actor: Actor,
  resource: Resource<T, C, F>,
  fields: F,
): Promise<Item<C>> {
  mayWrite(resource, actor);
  const values = resource.parse(fields);
  resource.guard?.(actor, fields);
  const at = clock.now();
  return db.transaction(async (tx) => {
    await resource.prepare?.(tx, fields);
    const stamped = { ...values, version: 1, createdAt: at, updatedAt: at };
    const insert = tx.insert<CatalogTable>(resource.table).values(stamped).$dynamic();
    const { overwrites, seen } = resource;
    if (overwrites && seen)
      insert.onConflictDoUpdate({
        target: overwrites.by,
        set: { ...stamped, ...overwrites.as },
        setWhere: not(seen(actor)),
      });
    const returning = insert.returning({ id: resource.table.id });
    const [made] = (await unlessTaken(resource.taken, returning)) as { id: number }[];
    if (!made) throw new Conflict(overwrites!.taken);
    await resource.keep?.(tx, made.id, fields);
    return getRecord({ db: tx }, actor, resource, made.id);
  });
}
