import { getTableColumns } from "drizzle-orm";
import { team, teamIncidentPriority, teamIncidentType, teamTerm } from "../../drizzle/schema/index.ts";
import { descriptionLength, parseName, parseText } from "../../platform/text.ts";
import { parseUserName } from "../auth/user/field.ts";
import { onlyAdminsCall } from "./called.ts";
import { type ReasonLinks, type Reasons, reasonColumns, setReasons } from "./reason.ts";
import { releaseFromLists } from "./release.ts";
import { byText, listOf, type Resource } from "./resource.ts";

const links: ReasonLinks = {
  incidentTypeIds: { owner: teamIncidentType.teamId, to: teamIncidentType.incidentTypeId },
  incidentPriorityIds: { owner: teamIncidentPriority.teamId, to: teamIncidentPriority.incidentPriorityId },
  termIds: { owner: teamTerm.teamId, to: teamTerm.termId },
};

const { search, ...row } = getTableColumns(team);
const columns = { ...row, ...reasonColumns(links, team.id) };

export interface TeamFields extends Reasons {
  name: string;
  description: string;
  /** The address of its mailing list, in any spelling. The canonical one is stored. */
  email: string | null;
}

/** Teams. `domain` completes the bare name of a list. */
export function teams(domain: string | undefined): Resource<typeof team, typeof columns, TeamFields> {
  const parse = (text: string | null) => (text === null ? null : parseUserName("email", text, domain));
  return {
    one: "team",
    many: "teams",
    table: team,
    columns,
    list: listOf("teams", team, { name: team.name }),
    filters: { name: byText("name", team.name) },
    writers: "members",
    deleted: "team.deleted",
    taken: { team_name_idx: "Another team has this name" },
    guard: (actor, fields, before) =>
      onlyAdminsCall(actor, { ...fields, email: parse(fields.email) }, before),
    parse: ({ name, description, email }) => ({
      name: parseName("name", name),
      description: parseText("description", description, descriptionLength),
      email: parse(email),
    }),
    keep: async (tx, id, fields) => void (await setReasons(tx, links, id, fields)),
    release: (tx, id) => releaseFromLists(tx, "teamId", id),
  };
}
