import { sql } from "drizzle-orm";
import { individual } from "../../../drizzle/schema/index.ts";

/** An individual as shown wherever they are involved in something. */
export type Person = Pick<typeof individual.$inferSelect, "id" | "name" | "email">;

/** The default name: the first part of the address. */
export function nameByAddress(email: string): string {
  return email.slice(0, email.lastIndexOf("@"));
}

export const personColumns = { id: individual.id, name: individual.name, email: individual.email };

/** The same as JSON, for a subquery. */
export const personJson = sql<Person>`json_build_object(
  'id', ${individual.id}, 'name', ${individual.name}, 'email', ${individual.email})`;
