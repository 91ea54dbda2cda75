import { expect, test } from "bun:test";
import { useDatabase } from "../../tests/support/database/database.ts";
import { refusal, withIncidentIn } from "../../tests/support/domain/incident.ts";
import { delivery } from "./index.ts";

const at = new Date("2026-12-01T12:00:00.000Z");

const client = useDatabase(2);

test.each<[Partial<typeof delivery.$inferInsert>, string | undefined]>([
  [{}, undefined],
  [{ state: "Lost" as "Done", dueAt: null, finishedAt: at }, "delivery_state_known"],
  [{ leaseUntil: at }, undefined],
  [{ state: "Done", leaseUntil: at, dueAt: null, finishedAt: at }, "delivery_lease_of_state"],
  [{ dueAt: null }, "delivery_due_of_state"],
  [{ finishedAt: at }, "delivery_finished_of_state"],
  [{ state: "Done", dueAt: null, finishedAt: at }, undefined],
  [{ recipient: "a" }, "delivery_to_one"],
  [{ recipient: "a", individualId: null }, undefined],
  [{ state: "Split", dueAt: null, finishedAt: at }, "delivery_split_to_everyone"],
  [{ state: "Split", dueAt: null, finishedAt: at, individualId: null }, undefined],
  [{ state: "Dead", dueAt: null, finishedAt: at }, "delivery_dead_says_why"],
  [{ state: "Dead", dueAt: null, finishedAt: at, error: "x" }, undefined],
])("a delivery with %j: %p", (values, constraint) =>
  withIncidentIn(client.db, at, async (tx, { incidentId, alice }) => {
    const row = {
      key: "t/w/alice/mail",
      task: "t",
      incidentId,
      about: [incidentId],
      individualId: alice,
      pluginSlug: "mail",
      subject: "s",
      text: "t",
      queuedAt: at,
      dueAt: at,
      ...values,
    };
    expect(await refusal(tx, (inner) => inner.insert(delivery).values(row))).toBe(constraint);
    if (constraint) return;
    expect(await refusal(tx, (inner) => inner.insert(delivery).values(row))).toBe("delivery_pkey");
  }),
);
