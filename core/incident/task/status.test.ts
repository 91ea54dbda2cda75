import { expect, test } from "bun:test";
import fc from "fast-check";
import { taskStatuses } from "../../../drizzle/schema/index.ts";
import { type TaskState, transition } from "./status.ts";

const status = fc.constantFrom(...taskStatuses);

test("resolvedAt is the last time a task became Resolved, and each change has one event", () => {
  fc.assert(
    fc.property(fc.array(status, { maxLength: 30 }), (wanted) => {
      let state: TaskState = { status: "Open", resolvedAt: null };
      let since: number | null = null;
      for (const [minute, next] of wanted.entries()) {
        const before = state.status;
        const { kind, ...after } = transition(state, next, new Date(minute * 60_000));
        if (next !== before) since = next === "Resolved" ? minute : null;
        expect(after).toEqual({ status: next, resolvedAt: since === null ? null : new Date(since * 60_000) });
        expect(kind).toBe(next === before ? undefined : told[next]);
        state = after;
      }
    }),
  );
});

const told = { Open: "task.reopened", Resolved: "task.resolved", Cancelled: "task.cancelled" } as const;
