import type { Runner } from "./inventory.ts";

/**
 * Marks pending deliveries of a freshly restored backup as dead: the original database may have sent them since. They
 * are only sent again on request, with `svc scheduler deliveries --all-dead`.
 */
export async function holdRestored(sql: Runner): Promise<void> {
  const [there] = await sql.unsafe("select to_regclass('public.delivery') is not null as yes");
  if (!there?.yes) return;
  await sql.unsafe(`
    update public.delivery set state = 'Dead', lease_until = null, due_at = null, finished_at = now(),
      error = 'It was pending in a restored backup, so it may have been sent since'
    where state = 'Queued'`);
}
