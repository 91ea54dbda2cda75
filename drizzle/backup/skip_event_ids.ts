import type { Runner } from "./inventory.ts";

/** More events than anyone writes between a backup and its restore. */
const skipped = 1_000_000;

/**
 * Skips the ids of events that were written after the backup and are lost with the replaced database. If other events got
 * these ids, a client that resumes after such an id would miss the ones before it.
 */
export async function skipEventIds(sql: Runner): Promise<void> {
  await sql.unsafe(
    `
    select setval(sequence, nextval(sequence) + $1::int)
    from pg_attribute, pg_get_serial_sequence('public.event', attname) as sequence
    where attrelid = to_regclass('public.event') and attname = 'id' and not attisdropped and sequence is not null`,
    [skipped],
  );
}
