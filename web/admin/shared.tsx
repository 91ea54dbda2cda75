import { requireAdmin } from "../../core/context.ts";
import { adminPath } from "../paths.ts";
import type { PageContent, Site, Submission, Visit } from "../site.tsx";
import type { Values } from "../values.ts";

const what = "open the administration";

/** A handler for a page of the administration. Others get 403. */
export const admins = (site: Site, work: (visit: Visit) => Promise<PageContent | Response>) =>
  site.read(async (visit) => {
    requireAdmin(visit.visitor.actor, what);
    const made = await work(visit);
    return made instanceof Response ? made : { ...made, here: "admin" };
  });

/** One for a form of it. */
export const adminsSubmit = (site: Site, work: (visit: Visit, values: Values) => Promise<Submission>) =>
  site.submit(async (visit, values) => {
    requireAdmin(visit.visitor.actor, what);
    return work(visit, values);
  });

export const Crumb = () => (
  <p class="crumb">
    <a href={adminPath}>Administration</a>
  </p>
);
