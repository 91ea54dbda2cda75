import { isDeepStrictEqual } from "node:util";
import type { Changes } from "./compare.ts";
import { mentions, withoutStrings } from "./names.ts";
import type { Schema, View } from "./snapshot.ts";

/**
 * Finds the views to drop, to create, and to recreate because PostgreSQL cannot alter anything that a view uses,
 * including all views that depend on them.
 */
export function compareViews(
  before: Schema,
  after: Schema,
  changes: Changes,
  renamed: readonly string[],
): void {
  const own = (schema: Schema) => Object.entries(schema.views).filter(([, view]) => !view.isExisting);
  const disturbed = [
    ...changes.goneTables.map(({ name }) => name),
    ...changes.tables
      .filter((table) => table.disturbed.length > 0 || table.gonePrimaryKey)
      .map(({ before }) => before.name),
    ...changes.remadeEnums.map(({ name }) => name),
  ];
  // `*` is expanded when a view is created.
  const widened = [
    ...renamed,
    ...changes.tables.filter(({ made }) => made.length > 0).map((it) => it.after.name),
  ];
  const isStale = ({ definition }: View) =>
    disturbed.some((name) => mentions(definition, name)) ||
    (hasStar(definition) && widened.some((name) => mentions(definition, name)));
  const gone = new Map(
    own(before).filter(([key, view]) => !sameView(view, after.views[key]) || isStale(view)),
  );
  const standsOn = (view: View, other: View) => view !== other && mentions(view.definition, other.name);
  for (let grown = -1; grown !== gone.size;) {
    grown = gone.size;
    for (const [key, view] of own(before)) {
      if ([...gone.values()].some((other) => standsOn(view, other))) gone.set(key, view);
    }
  }
  const made = own(after).filter(([key]) => before.views[key]?.isExisting !== false || gone.has(key));
  changes.goneViews = standingOrder([...gone.values()], standsOn).toReversed();
  changes.madeViews = standingOrder(
    made.map(([, view]) => view),
    standsOn,
  );
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
export function standingOrder<T>(things: readonly T[], standsOn: (thing: T, other: T) => boolean): T[] {
  const order: T[] = [];
  let waiting = [...things];
  while (waiting.length > 0) {
    const next = waiting.find((thing) => !waiting.some((other) => standsOn(thing, other))) ?? waiting[0]!;
    order.push(next);
    waiting = waiting.filter((thing) => thing !== next);
  }
  return order;
}
