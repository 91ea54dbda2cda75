import { Forbidden } from "../../platform/errors.ts";
import type { Actor } from "../context.ts";
import type { Reasons } from "./reason.ts";

type Called = Reasons & { email: string | null };

/**
 * Only admins may choose for which incidents somebody is called, and change the address of somebody who may have been
 * called: participants can read a Restricted incident, and the address identifies them. Otherwise a member could use
 * either to get into one.
 *
 * @throws Forbidden
 */
export function onlyAdminsCall(actor: Actor, wanted: Called, before?: Called): void {
  if (actor.admin) return;
  if (before && wanted.email !== before.email) throw new Forbidden("Only an admin can change an email");
  for (const kind of ["incidentTypeIds", "incidentPriorityIds", "termIds"] as const) {
    const known = new Set(before?.[kind]);
    if (known.symmetricDifference(new Set(wanted[kind])).size > 0)
      throw new Forbidden("Only an admin can choose for which incidents somebody is called");
  }
}
