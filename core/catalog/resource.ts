import type { SQL } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import type { SelectResultFields } from "drizzle-orm/query-builders/select.types";
import type { Transaction } from "../../drizzle/client.ts";
import { Forbidden, NotFound, type SvcError } from "../../platform/errors.ts";
import { nameLength, parseText } from "../../platform/text.ts";
import type { AuditAction, AuditEvent } from "../audit.ts";
import type { Actor } from "../context.ts";
import type { Reader } from "../incident/visibility/visibility.ts";
import type { List } from "../list/page.ts";

// Terminology. The catalog is what there is before an incident: people, teams, services, types, priorities, terms,
// definitions, applications. A resource is one kind of record of it: a table, and what belongs to its rows in others
// (links, a rotation). The verbs of this folder do the same with each; a file a resource says what is its own.

/** A table whose rows a PUT replaces. */
export type CatalogTable = PgTable & Record<"id" | "version" | "createdAt" | "updatedAt", PgColumn>;

export type Columns = Record<"id" | "version" | "createdAt" | "updatedAt", PgColumn> &
  Record<string, PgColumn | SQL>;

/** A record as it is read. */
export type Item<C extends Columns> = SelectResultFields<C> & {
  id: number;
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

/** When an admin deletes something, who, and from where. */
export type Deletion = Pick<AuditEvent, "at" | "actor" | "address">;

/** The columns that a caller writes. */
export type Values<T extends CatalogTable> = Omit<
  T["$inferInsert"],
  "id" | "version" | "createdAt" | "updatedAt" | "search"
>;

export interface Resource<
  T extends CatalogTable = CatalogTable,
  C extends Columns = Columns,
  Fields extends object = object,
> {
  /** In a sentence: `incident type`, `incident types`. */
  one: string;
  many: string;
  table: T;
  /** What is shown of a record. */
  columns: C;
  list: List<string>;
  /** What a list can be held to, and how the value of a caller becomes that of the column. It throws InvalidInput. */
  filters: Readonly<Record<string, { by: PgColumn; parse: (text: string) => string }>>;
  /** False of tombstones, which nobody sees. */
  there?: SQL;
  /** Those that the reader may know of; without it, all. */
  seen?(reader: Reader): SQL;
  /**
   * A POST of a record that is there and that the actor may not know of is answered as if it were new: the row with the same
   * `by` is written over, with `as` beside the values. Whose the row is otherwise, `taken` says.
   */
  overwrites?: { by: PgColumn; as: Record<string, unknown>; taken: string };
  writers: "members" | "admins";
  /** What the audit log calls deleting one. */
  deleted: AuditAction;
  /** The unique indexes, and what is said when another record has the value. */
  taken: Readonly<Record<string, string>>;
  /** What of it only admins write, beside `writers`; `before` is the record that a PUT changes. @throws Forbidden */
  guard?(actor: Actor, fields: Fields, before?: Item<C>): void;
  /** @throws InvalidInput naming the field as the API calls it */
  parse(fields: Fields): Values<T>;
  /** Whether the actor may write these values into the row; if not, `whyNot` says why. */
  may?(actor: Actor, values: Values<T>): SQL | undefined;
  whyNot?(item: Item<C>): SvcError;
  /** Before the row is written: sees to it that what it names is there and stays. @throws InvalidInput */
  prepare?(tx: Transaction, fields: Fields): Promise<void>;
  /** After it: writes what belongs to the row in other tables. @throws InvalidInput */
  keep?(tx: Transaction, id: number, fields: Fields): Promise<void>;
  /** The kind of plugin whose lists bring some of the records: what is on one is deleted there. */
  listedBy?: "term" | "application";
  /**
   * Takes away what would stand in the way of deleting it and is not anybody's own, in the order in which others lock it.
   * What of that is a record itself is `told` of to the audit log.
   */
  release?(tx: Transaction, id: number, told: Deletion): Promise<void>;
}

/** @throws Forbidden */
export function mayWrite({ many, writers }: Pick<Resource, "many" | "writers">, actor: Actor): void {
  if (writers === "admins" && !actor.admin) throw new Forbidden(`Only an admin can change ${many}`);
}

export function noSuch({ one }: Pick<Resource, "one">): NotFound {
  return new NotFound(`There is no such ${one}`);
}

/** A filter by a text as it stands. */
export function byText(field: string, by: PgColumn) {
  return { by, parse: (text: string) => parseText(field, text, nameLength) };
}
