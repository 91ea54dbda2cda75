import { eq, sql } from "drizzle-orm";
import { preparedQuery } from "../../../drizzle/prepared_query.ts";
import { incident } from "../../../drizzle/schema/index.ts";
import type { Context } from "../../context.ts";

/** The id of no incident: larger than any that a path accepts. */
const noId = 999_999_999_999_999;

/** Whether the text is a name, such as `INC-44`, in upper or lower case. */
export function isIncidentName(text: string): boolean {
  return /^inc-[1-9][0-9]{0,18}$/i.test(text);
}

const idQuery = preparedQuery((db) =>
  db
    .select({ id: incident.id })
    .from(incident)
    .where(eq(incident.name, sql.placeholder("name")))
    .prepare("incident_of_name"),
);

/**
 * Returns the id of the incident with this name. It does not ask who may read the incident: the query that uses the id
 * does. An unknown name becomes the id of no incident, so that hidden and unknown incidents take the same queries.
 */
export async function idOfName({ db }: Pick<Context, "db">, name: string): Promise<number> {
  const [found] = await idQuery(db).execute({ name: name.toUpperCase() });
  return found?.id ?? noId;
}
