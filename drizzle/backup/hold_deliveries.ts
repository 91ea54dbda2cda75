import type { Runner } from "./inventory.ts";

/**
 * For a backup that was just loaded: what waited to be sent in it may have been sent since, by the database that it is
 * of. Nobody sends it again unasked; `svc scheduler deliveries --all-dead` does.
 */
export async function holdRestored(sql: Runner): Promise<void> {
  const [there] = await sql.unsafe("select to_regclass('public.delivery') is not null as yes");
  if (!there?.yes) return;
  await sql.unsafe(`
    update public.delivery set state = 'Dead', lease_until = null, due_at = null, finished_at = now(),
      error = 'It waited in a backup that was restored: it may have been sent since'
    where state = 'Queued'`);
}
