import { getTableColumns } from "drizzle-orm";
import {
  individual,
  individualIncidentPriority,
  individualIncidentType,
  individualTerm,
} from "../../drizzle/schema/index.ts";
import { toIncidentPriority, toIncidentType, toTerm } from "../link.ts";
import { type ReasonLinks, reasonColumns, type Reasons, setReasons } from "../reason.ts";
import { parseName } from "../text.ts";
import { parseUserName } from "../user/field.ts";
import { onlyAdminsCall } from "./called.ts";
import { releaseFromLists, releaseFromTombstones } from "./release.ts";
import { byText, type Resource } from "./resource.ts";

const links: ReasonLinks = {
  incidentTypeIds: {
    table: individualIncidentType,
    owner: individualIncidentType.individualId,
    to: individualIncidentType.incidentTypeId,
    target: toIncidentType,
  },
  incidentPriorityIds: {
    table: individualIncidentPriority,
    owner: individualIncidentPriority.individualId,
    to: individualIncidentPriority.incidentPriorityId,
    target: toIncidentPriority,
  },
  termIds: {
    table: individualTerm,
    owner: individualTerm.individualId,
    to: individualTerm.termId,
    target: toTerm,
  },
};

const { search, ...row } = getTableColumns(individual);
const columns = { ...row, ...reasonColumns(links, individual.id) };

export interface IndividualFields extends Reasons {
  name: string;
  /** Any spelling of it; kept is the canonical one. */
  email: string;
}

/** People. `domain` completes a bare user name. */
export function individuals(
  domain: string | undefined,
): Resource<typeof individual, typeof columns, IndividualFields> {
  const parse = (text: string) => parseUserName("email", text, domain);
  return {
    ...{ one: "individual", many: "individuals", table: individual, columns },
    list: {
      ...{ name: "individuals", id: individual.id, search, defaultSort: "-id" },
      sorts: { id: { by: individual.id, kind: "id" }, name: { by: individual.name, kind: "text" } },
    },
    filters: { email: { by: individual.email, parse }, name: byText("name", individual.name) },
    ...{ writers: "members", deleted: "individual.deleted" },
    taken: { individual_email_idx: "Another individual has this email" },
    guard: (actor, fields, before) =>
      onlyAdminsCall(actor, { ...fields, email: parse(fields.email) }, before),
    parse: ({ name, email }) => ({ name: parseName("name", name), email: parse(email) }),
    keep: async (tx, id, fields) => void (await setReasons(tx, links, id, fields)),
    release: async (tx, id) => {
      await releaseFromTombstones(tx, id);
      await releaseFromLists(tx, "individualId", id);
    },
  };
}
