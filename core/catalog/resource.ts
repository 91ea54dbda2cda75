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

// Terminology. The catalog is what exists before an incident: people, teams, services, types, priorities, terms,
// definitions, applications. A resource is one kind of record of it: a table, with related rows in other tables (links,
// a rotation). The operations of this folder are the same for each resource. Each resource has a file with its
// specifics.

/** What every record has. */
export interface CatalogRecord {
  id: number;
  version: number;
  createdAt: Date;
  updatedAt: Date;
}

/** A table whose rows a PUT replaces. */
export type CatalogTable = PgTable & Record<keyof CatalogRecord, PgColumn>;

export type Columns = Record<keyof CatalogRecord, PgColumn> & Record<string, PgColumn | SQL>;

/** A record as read. */
export type Item<C extends Columns> = SelectResultFields<C> & CatalogRecord;

/** The time, actor and address of a deletion by an admin. */
export type Deletion = Pick<AuditEvent, "at" | "actor" | "address">;

/** The columns that a caller writes. */
export type Values<T extends CatalogTable> = Omit<T["$inferInsert"], keyof CatalogRecord | "search">;

export interface Resource<
  T extends CatalogTable = CatalogTable,
  C extends Columns = Columns,
  Fields extends object = object,
> {
  /** For sentences: `incident type`, `incident types`. */
  one: string;
  many: string;
  table: T;
  /** The visible columns of a record. */
  columns: C;
  list: List<string>;
  /** The filters of a list, and how to parse a caller's value. `parse` throws InvalidInput. */
  filters: Readonly<Record<string, { by: PgColumn; parse: (text: string) => string }>>;
  /** Matches the records that exist for readers. Deleted ones of a source remain as tombstones. */
  present?: SQL;
  /** The records that the reader may know of. By default all. */
  seen?(reader: Reader): SQL;
  /**
   * A POST of an existing record of which the actor may not know is answered as if it were new: the row with the same
   * `by` is overwritten with the values and `as`. `taken` is the error when the row belongs to somebody else.
   */
  overwrites?: { by: PgColumn; as: Record<string, unknown>; taken: string };
  writers: "members" | "admins";
  /** The audit action of a deletion. */
  deleted: AuditAction;
  /** The unique indexes, and the error when another record has the value. */
  taken: Readonly<Record<string, string>>;
  /**
   * Checks what only admins may write, in addition to `writers`. `before` is the record that a PUT changes.
   * @throws Forbidden
   */
  guard?(actor: Actor, fields: Fields, before?: Item<C>): void;
  /** @throws InvalidInput with the API's name of the field */
  parse(fields: Fields): Values<T>;
  /** Whether the actor may write these values into the row. If not, `whyNot` gives the error. */
  may?(actor: Actor, values: Values<T>): SQL | undefined;
  whyNot?(item: Item<C>): SvcError;
  /** Before the row is written: checks and locks what it refers to. @throws InvalidInput */
  prepare?(tx: Transaction, fields: Fields): Promise<void>;
  /** After the row is written: writes its related rows. @throws InvalidInput */
  keep?(tx: Transaction, id: number, fields: Fields): Promise<void>;
  /** The plugin type whose lists contain some of the records. Those must be deleted at their source. */
  listedBy?: "term" | "application";
  /**
   * Removes references that would prevent the deletion and belong to nobody, in the order in which others lock them.
   * Those that are records are audited like `deletion`.
   */
  release?(tx: Transaction, id: number, deletion: Deletion): Promise<void>;
}

/** @throws Forbidden */
export function mayWrite({ many, writers }: Pick<Resource, "many" | "writers">, actor: Actor): void {
  if (writers === "admins" && !actor.admin) throw new Forbidden(`Only an admin can change ${many}`);
}

export function noSuch({ one }: Pick<Resource, "one">): NotFound {
  return new NotFound(`There is no such ${one}`);
}

/** A filter by exact text. */
export function byText(field: string, by: PgColumn) {
  return { by, parse: (text: string) => parseText(field, text, nameLength) };
}

/** A list that is sorted by id, newest first, or by one of these texts. */
export function listOf(
  name: string,
  { id, search }: { id: PgColumn; search?: PgColumn },
  texts: Record<string, PgColumn> = {},
): List<string> {
  const sorts = Object.entries(texts).map(([sort, by]) => [sort, { by, kind: "text" }]);
  return {
    name,
    id,
    search,
    defaultSort: "-id",
    sorts: { id: { by: id, kind: "id" }, ...Object.fromEntries(sorts) },
  };
}
