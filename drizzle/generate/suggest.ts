import { nearest } from "../../platform/nearest.ts";
import type { Changes } from "./compare.ts";
import { formatName } from "./rename.ts";
import type { Column, Table } from "./snapshot.ts";
import { parseType } from "./types.ts";

/**
 * Drops and additions that look like renames, in the syntax of `--rename`: a column of the same type in the same table,
 * or a table that has at least half of its columns in common.
 */
export function suggestRenames({ tables, goneTables, madeTables }: Changes): string[] {
  const ofTables = pairs(goneTables, madeTables, isLikeTable).map(
    ([gone, made]) =>
      `${place(gone)}:${gone.schema === made.schema ? formatName([made.name]) : place(made, true)}`,
  );
  const ofColumns = tables.flatMap(({ before, after, gone, made }) =>
    pairs(
      gone.map((name) => before.columns[name]!),
      made.map((name) => after.columns[name]!),
      isLikeColumn,
    ).map(([old, now]) => `${place(before)}.${formatName([old.name])}:${formatName([now.name])}`),
  );
  return [...ofTables, ...ofColumns];
}

/** Pairs each dropped object with a similar added one: the one with the nearest name, else the first. */
function pairs<T extends { name: string }>(
  gone: readonly T[],
  made: readonly T[],
  isLike: (a: T, b: T) => boolean,
): [T, T][] {
  const left = [...made];
  return gone.flatMap((thing): [T, T][] => {
    const candidates = left.filter((other) => isLike(thing, other));
    const names = candidates.map(({ name }) => name);
    const best = candidates.find(({ name }) => name === nearest(thing.name, names)) ?? candidates[0];
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

function place({ schema, name }: Table, always = false): string {
  return formatName(schema || always ? [schema || "public", name] : [name]);
}
