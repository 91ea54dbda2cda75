import { missing } from "./compare.ts";
import { removedValues } from "./enums.ts";
import { formatName } from "./rename.ts";
import type { Column, Schema, Table } from "./snapshot.ts";
import { parseType } from "./types.ts";

/**
 * Drops and additions that look like renames, in the syntax of `--rename`: a column of the same type in the same table,
 * a table that has at least half of its columns in common, the only value of an enum that is replaced.
 */
export function suggestRenames(before: Schema, after: Schema): string[] {
  const [droppedTables, createdTables] = [
    missing(before.tables, after.tables),
    missing(after.tables, before.tables),
  ];
  const ofTables = pairs(droppedTables, createdTables, isLikeTable).map(
    ([gone, made]) =>
      `${place(gone)}:${gone.schema === made.schema ? formatName([made.name]) : place(made, true)}`,
  );
  const ofColumns = Object.entries(after.tables).flatMap(([key, { columns }]) => {
    const table = before.tables[key];
    if (!table) return [];
    return pairs(missing(table.columns, columns), missing(columns, table.columns), isLikeColumn).map(
      ([old, now]) => `${place(table)}.${formatName([old.name])}:${formatName([now.name])}`,
    );
  });
  const ofValues = Object.entries(after.enums).flatMap(([key, type]) => {
    const [gone, made] = [removedValues(before.enums[key], type), removedValues(type, before.enums[key])];
    if (!before.enums[key] || gone.length !== 1 || made.length !== 1) return [];
    return [`${place(type)}.${formatName(gone)}:${formatName(made)}`];
  });
  return [...ofTables, ...ofColumns, ...ofValues];
}

/** Pairs each dropped object with the first added one that is similar. */
function pairs<T extends { name: string }>(
  gone: readonly T[],
  made: readonly T[],
  isLike: (a: T, b: T) => boolean,
): [T, T][] {
  const left = [...made];
  return gone.flatMap((thing): [T, T][] => {
    const best = left.find((other) => isLike(thing, other));
    if (!best) return [];
    left.splice(left.indexOf(best), 1);
    return [[thing, best]];
  });
}

function isLikeColumn(a: Column, b: Column): boolean {
  const [from, to] = [parseType(a), parseType(b)];
  return from.base === to.base && from.dimensions === to.dimensions && !a.generated === !b.generated;
}

function isLikeTable(a: Table, b: Table): boolean {
  const shared = Object.values(a.columns).filter((column) => {
    const other = b.columns[column.name];
    return other !== undefined && isLikeColumn(column, other);
  });
  return shared.length * 2 >= Math.max(Object.keys(a.columns).length, Object.keys(b.columns).length);
}

function place({ schema, name }: { schema: string; name: string }, always = false): string {
  return formatName((schema || "public") !== "public" || always ? [schema || "public", name] : [name]);
}
