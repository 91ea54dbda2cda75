import { getTableColumns } from "drizzle-orm";
import {
  individual,
  individualIncidentPriority,
  individualIncidentType,
  individualTerm,
} from "../../drizzle/schema/index.ts";
import { parseName } from "../../platform/text.ts";
import { parseUserName } from "../auth/user/field.ts";
import { mayKnow } from "../incident/visibility/visibility.ts";
import { onlyAdminsCall } from "./called.ts";
import { type ReasonLinks, type Reasons, reasonColumns, setReasons } from "./reason.ts";
import { releaseFromLists, releaseFromTombstones } from "./release.ts";
import { byText, listOf, type Resource } from "./resource.ts";

const taken = "Another individual has this email";

const links: ReasonLinks = {
  incidentTypeIds: { owner: individualIncidentType.individualId, to: individualIncidentType.incidentTypeId },
  incidentPriorityIds: {
    owner: individualIncidentPriority.individualId,
    to: individualIncidentPriority.incidentPriorityId,
  },
  termIds: { owner: individualTerm.individualId, to: individualTerm.termId },
};

const { search, listed, timeZone, ...row } = getTableColumns(individual);
const columns = { ...row, ...reasonColumns(links, individual.id) };

export interface IndividualFields extends Reasons {
  name: string;
  /** In any spelling. The canonical one is stored. */
  email: string;
}

/** People. `domain` completes a bare user name. */
export function individuals(
  domain: string | undefined,
): Resource<typeof individual, typeof columns, IndividualFields> {
  const parse = (text: string) => parseUserName("email", text, domain);
  return {
    one: "individual",
    many: "individuals",
    table: individual,
    columns,
    list: listOf("individuals", individual, { name: individual.name }),
    filters: { email: { by: individual.email, parse }, name: byText("name", individual.name) },
    writers: "members",
    deleted: "individual.deleted",
    taken: { individual_email_idx: taken },
    seen: mayKnow,
    overwrites: { by: individual.email, as: { listed: true }, taken },
    guard: (actor, fields, before) =>
      onlyAdminsCall(actor, { ...fields, email: parse(fields.email) }, before),
    parse: ({ name, email, incidentTypeIds, incidentPriorityIds, termIds }) => ({
      name: parseName("name", name),
      email: parse(email),
      // A person whom an admin has chosen to be called is listed in the catalog, even if unlisted before.
      ...([incidentTypeIds, incidentPriorityIds, termIds].some((ids) => ids.length > 0) && { listed: true }),
    }),
    keep: async (tx, id, fields) => void (await setReasons(tx, links, id, fields)),
    release: async (tx, id) => {
      await releaseFromTombstones(tx, id);
      await releaseFromLists(tx, "individualId", id);
    },
  };
}
