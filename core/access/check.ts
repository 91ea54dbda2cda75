import { eq } from "drizzle-orm";
import { accessRole } from "../../drizzle/schema/index.ts";
import { Forbidden } from "../../platform/errors.ts";
import type { Actor } from "../context.ts";
import type { AppContext } from "../plugin/context.ts";
import type { MethodAnswer } from "../plugin/methods.ts";
import { approverDays, approversOf, knownApprovers } from "./request.ts";
import { noSuchRole } from "./role.ts";
import { callForRole, pluginOf, type RoleRow } from "./role_plugin.ts";

type Problem = MethodAnswer<"credential", "check">[number];

/**
 * Asks the plugin of a role whether it can issue credentials. A failed call is reported as a problem. It warns
 * if too few users are known who may approve.
 *
 * @throws Forbidden
 * @throws NotFound
 * @throws Conflict when the plugin is not enabled
 */
export async function checkRole(
  context: AppContext,
  actor: Actor,
  slug: string,
): Promise<{ problems: Problem[] }> {
  if (!actor.admin) throw new Forbidden("Only admins can check access roles");
  const [role] = await context.db.select().from(accessRole).where(eq(accessRole.slug, slug));
  if (!role) throw noSuchRole();
  const plugin = pluginOf(context, role.pluginSlug);
  const outcome = await callForRole(context, { role, plugin }, "check", {});
  const problems = outcome.ok ? outcome.value : [{ problem: outcome.detail }];
  return { problems: [...problems, ...(await missingApprovers(context, role))] };
}

/** A warning if a request may wait for approvals that nobody can give. */
async function missingApprovers(context: AppContext, role: RoleRow): Promise<Problem[]> {
  if (role.approval === "none") return [];
  const { length } = await knownApprovers(context.db, context, role);
  const known = role.approval === "commander" ? length + 1 : length;
  if (known >= role.approvalsNeeded) return [];
  const problem = `Approvals needed: ${role.approvalsNeeded}. Users who may approve (${approversOf(role)}) and signed in in the last ${approverDays} days: ${known}`;
  return [{ problem, warning: true }];
}
