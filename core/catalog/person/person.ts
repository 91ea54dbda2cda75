import { individual } from "../../../drizzle/schema/index.ts";

/** An individual as they are shown wherever they have a part in something. */
export type Person = Pick<typeof individual.$inferSelect, "id" | "name" | "email">;

/** Their name until somebody says otherwise: the first part of their address. */
export function nameByAddress(email: string): string {
  return email.slice(0, email.lastIndexOf("@"));
}

export const personColumns = { id: individual.id, name: individual.name, email: individual.email };
