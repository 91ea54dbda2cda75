import { isDeepStrictEqual } from "node:util";
import type { Plan } from "./compare.ts";
import { mentions, tableKey, withoutStrings } from "./names.ts";
import type { View } from "./snapshot.ts";

/**
 * The views to drop: those that change, those that use what PostgreSQL cannot alter under a view, and all views that
 * depend on them, dependents first.
 */
export function goneViews(
  { before, after, goneTables, tables, remadeEnums }: Plan,
  renamed: readonly string[],
): string[] {
  const own = Object.entries(before.views);
  const disturbed = [
    ...goneTables.map(({ name }) => name),
    ...Object.values(tables)
      .filter((table) => table.disturbed.length > 0 || table.compositePrimaryKeys.length > 0)
      .map((table) => table.before.name),
    ...remadeEnums.map(({ name }) => name),
  ];
  // `*` is expanded when a view is created.
  const widened = [
    ...renamed,
    ...Object.values(tables)
      .filter(({ made }) => made.length > 0)
      .map((it) => it.after.name),
  ];
  const isStale = ({ definition }: View) =>
    disturbed.some((name) => mentions(definition, name)) ||
    (hasStar(definition) && widened.some((name) => mentions(definition, name)));
  const gone = new Map(own.filter(([key, view]) => !sameView(view, after.views[key]) || isStale(view)));
  for (let grown = -1; grown !== gone.size;) {
    grown = gone.size;
    for (const [key, view] of own) {
      if ([...gone.values()].some((other) => standsOn(view, other))) gone.set(key, view);
    }
  }
  return standingOrder([...gone.values()], standsOn)
    .toReversed()
    .map(tableKey);
}

export function standsOn(view: View, other: View): boolean {
  return view !== other && mentions(view.definition, other.name);
}

/** `*`, `t.*` or `TABLE t`. Also matches a product, which only causes a needless recreation. */
function hasStar(definition: string | undefined): boolean {
  return /\*(?!\s*\))|\btable\b/i.test(
    withoutStrings(definition ?? "").replace(/\bcount\s*\(\s*\*\s*\)/gi, ""),
  );
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
