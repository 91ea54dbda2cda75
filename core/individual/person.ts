import { individual } from "../../drizzle/schema/index.ts";

/** An individual as they are shown wherever they have a part in something. */
export type Person = Pick<typeof individual.$inferSelect, "id" | "name" | "email">;

export const personColumns = { id: individual.id, name: individual.name, email: individual.email };
