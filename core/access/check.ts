import { eq } from "drizzle-orm";
import { accessRole } from "../../drizzle/schema/index.ts";
import { Forbidden } from "../../platform/errors.ts";
import type { Actor } from "../context.ts";
import type { PluginContext } from "../plugin/context.ts";
import type { MethodAnswer } from "../plugin/methods.ts";
import { noSuchRole } from "./role.ts";
import { callForRole, pluginOf } from "./role_plugin.ts";

/**
 * Asks the plugin of a role whether it can issue credentials. A failed call is reported as a problem.
 *
 * @throws Forbidden
 * @throws NotFound
 * @throws Conflict when the plugin is not enabled
 */
export async function checkRole(
  context: PluginContext,
  actor: Actor,
  slug: string,
): Promise<{ problems: MethodAnswer<"credential", "check"> }> {
  if (!actor.admin) throw new Forbidden("Only admins can check access roles");
  const [role] = await context.db.select().from(accessRole).where(eq(accessRole.slug, slug));
  if (!role) throw noSuchRole();
  const plugin = pluginOf(context, role.pluginSlug);
  const outcome = await callForRole(context, { role, plugin }, "check", {});
  return { problems: outcome.ok ? outcome.value : [{ problem: outcome.detail }] };
}
