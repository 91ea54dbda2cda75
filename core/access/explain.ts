import { eq } from "drizzle-orm";
import { accessRole } from "../../drizzle/schema/index.ts";
import { Conflict, Unavailable } from "../../platform/errors.ts";
import type { Actor } from "../context.ts";
import type { AppContext } from "../plugin/context.ts";
import { getLease } from "./lease.ts";
import { callForRole, pluginOf } from "./role_plugin.ts";

/**
 * Asks the plugin of a lease what its end would hand over or drop at the target.
 *
 * @throws NotFound also for another user's lease, except for admins
 * @throws Conflict when the plugin is not enabled, or cannot tell
 * @throws Unavailable when the plugin fails
 */
export async function explainLease(
  context: AppContext,
  actor: Actor,
  id: number,
): Promise<{ items: string[] }> {
  const { roleId, name, handle } = await getLease(context, actor, id);
  const [role] = await context.db.select().from(accessRole).where(eq(accessRole.id, roleId));
  const plugin = pluginOf(context, role!.pluginSlug);
  if (plugin.methods.explain === undefined)
    throw new Conflict(`The plugin ${plugin.slug} does not describe the end of a lease`);
  const input = { leaseId: id, name, ...(handle === null ? {} : { handle }) };
  const outcome = await callForRole(context, { role: role!, plugin }, "explain", input);
  if (!outcome.ok) throw new Unavailable(`${role!.slug}: ${outcome.detail}`);
  return { items: outcome.value };
}
