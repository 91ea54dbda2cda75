import { expect, test } from "bun:test";
import { useDatabase } from "../../tests/support/database/database.ts";
import { refusal, withIncidentIn } from "../../tests/support/domain/incident.ts";
import { delivery } from "./index.ts";

const at = new Date("2026-12-01T12:00:00.000Z");

const client = useDatabase(2);

test.each<[Partial<typeof delivery.$inferInsert>, string | undefined]>([
  [{}, undefined],
  [{ state: "Lost" as "Done", jobId: null, dueAt: null, finishedAt: at }, "delivery_state_known"],
  [{ jobId: null }, "delivery_job_of_state"],
  [{ dueAt: null }, "delivery_due_of_state"],
  [{ finishedAt: at }, "delivery_finished_of_state"],
  [{ state: "Done", jobId: null, dueAt: null, finishedAt: at }, undefined],
  [{ recipient: "a" }, "delivery_to_one"],
  [{ recipient: "a", individualId: null }, undefined],
  [{ state: "Split", jobId: null, dueAt: null, finishedAt: at }, "delivery_split_to_everyone"],
  [{ state: "Split", jobId: null, dueAt: null, finishedAt: at, individualId: null }, undefined],
  [{ state: "Dead", jobId: null, dueAt: null, finishedAt: at }, "delivery_dead_says_why"],
  [{ state: "Dead", jobId: null, dueAt: null, finishedAt: at, lastError: "x" }, undefined],
])("a delivery with %j: %p", (values, constraint) =>
  withIncidentIn(client.db, at, async (tx, { incidentId, alice }) => {
    const row = {
      ...{ key: "t/w/alice/mail", task: "t", incidentId, about: [incidentId], individualId: alice },
      ...{ pluginSlug: "mail", subject: "s", text: "t", jobId: crypto.randomUUID(), queuedAt: at, dueAt: at },
      ...values,
    };
    expect(await refusal(tx, (inner) => inner.insert(delivery).values(row))).toBe(constraint);
    if (constraint) return;
    const again = { ...row, jobId: row.jobId && crypto.randomUUID() };
    expect(await refusal(tx, (inner) => inner.insert(delivery).values(again))).toBe("delivery_pkey");
    if (row.jobId) {
      const other = { ...row, key: "other" };
      expect(await refusal(tx, (inner) => inner.insert(delivery).values(other))).toBe("delivery_job_idx");
    }
  }),
);
