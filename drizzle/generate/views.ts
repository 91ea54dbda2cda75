import { isDeepStrictEqual } from "node:util";
import type { Plan } from "./compare.ts";
import { mentions, tableKey } from "./names.ts";
import type { View } from "./snapshot.ts";

/** The views to drop, dependents first: those that change, or use a table or an enum that changes, and all that use those. */
export function droppedViews(
  { before, after, droppedTables, tables, remadeEnums }: Plan,
  renamed: readonly string[],
): string[] {
  const own = Object.entries(before.views);
  const changed = [
    ...renamed,
    ...[...droppedTables, ...remadeEnums].map(({ name }) => name),
    ...Object.values(tables)
      // `*` is expanded when a view is created.
      .filter((it) => it.disturbed.length + it.added.length + it.compositePrimaryKeys.length > 0)
      .map((it) => it.after.name),
  ];
  const gone = new Map(
    own.filter(
      ([key, view]) =>
        !sameView(view, after.views[key]) || changed.some((name) => mentions(view.definition, name)),
    ),
  );
  for (let grown = -1; grown !== gone.size;) {
    grown = gone.size;
    for (const [key, view] of own)
      if ([...gone.values()].some((other) => standsOn(view, other))) gone.set(key, view);
  }
  return standingOrder([...gone.values()], standsOn)
    .toReversed()
    .map(tableKey);
}

export function standsOn(view: View, other: View): boolean {
  return view !== other && mentions(view.definition, other.name);
}

/** The columns in a view's snapshot only repeat its definition. */
function sameView(a: View, b: View | undefined): boolean {
  return b !== undefined && isDeepStrictEqual({ ...a, columns: {} }, { ...b, columns: {} });
}

/** Sorts each object after those it depends on, as far as there are no cycles. */
export function standingOrder<T>(things: readonly T[], needs: (thing: T, other: T) => boolean): T[] {
  const order: T[] = [];
  let waiting = [...things];
  while (waiting.length > 0) {
    const next = waiting.find((thing) => !waiting.some((other) => needs(thing, other))) ?? waiting[0]!;
    order.push(next);
    waiting = waiting.filter((thing) => thing !== next);
  }
  return order;
}
