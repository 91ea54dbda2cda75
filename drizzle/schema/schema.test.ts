import { describe, expect, test } from "bun:test";
import { eq, sql } from "drizzle-orm";
import type { PgColumn, PgTable } from "drizzle-orm/pg-core";
import { useDatabase } from "../../tests/support/database/database.ts";
import { type IncidentIds, refusal, withIncidentIn } from "../../tests/support/domain/incident.ts";
import type { Transaction } from "../client.ts";
import * as schema from "./index.ts";

// What the tables themselves reject, independently of the code.

const at = new Date("2026-12-01T12:00:00.000Z");
const stamps = { createdAt: at, updatedAt: at };
const hash = new Uint8Array(32);

const client = useDatabase(2);

const withIncident = (use: (tx: Transaction, ids: IncidentIds) => Promise<void>) =>
  withIncidentIn(client.db, at, use);

/** Updates one row with SQL that PostgreSQL must reject with that constraint, or accept ("taken"). */
function states(
  name: string,
  row: (ids: IncidentIds) => number,
  cases: readonly [set: string, answer: string][],
) {
  test.each(cases)(`${name} set %s: %s`, (set, answer) =>
    withIncident(async (tx, ids) => {
      const update = sql.raw(`update ${name} set ${set} where id = ${row(ids)}`);
      expect((await refusal(tx, (inner) => inner.execute(update))) ?? "taken").toBe(answer);
    }),
  );
}

test("incident names are consecutive: INC-<n>", () =>
  withIncident(async (tx, ids) => {
    const [first] = await tx.select().from(schema.incident).where(eq(schema.incident.id, ids.incidentId));
    const { id: _, name: __, search: ___, ...values } = first!;
    const [second] = await tx.insert(schema.incident).values(values).returning();
    expect(first?.name).toMatch(/^INC-\d+$/);
    expect(Number(second?.name.slice(4))).toBe(Number(first?.name.slice(4)) + 1);
  }));

describe("states", () => {
  states("incident", (ids) => ids.incidentId, [
    ["status = 'Stable'", "incident_stable_at_of_status"],
    ["stable_at = now()", "incident_stable_at_of_status"],
    ["status = 'Closed', closed_at = now()", "incident_stable_at_of_status"],
    ["status = 'Closed', stable_at = now()", "incident_closed_at_of_status"],
    ["status = 'Stable', stable_at = now(), closed_at = now()", "incident_closed_at_of_status"],
    ["status = 'Open', stable_at = now()", "incident_status_known"],
    ["visibility = 'Hidden'", "incident_visibility_known"],
    ["status = 'Stable', stable_at = now()", "taken"],
    // Another machine's clock may be slow, which is no reason to reject it.
    ["status = 'Closed', stable_at = now() - interval '1 s', closed_at = now() - interval '2 s'", "taken"],
  ]);
  states("task", (ids) => ids.taskId, [
    ["status = 'Deleted'", "task_status_known"],
    ["status = 'Resolved'", "task_resolved_at_of_status"],
    ["resolved_at = now()", "task_resolved_at_of_status"],
    ["external_id = null, deleted_at = now()", "task_deleted_upstream"],
    ["document_id = null", "task_external_id_of_a_document"],
    ["deleted_at = now()", "taken"],
    ["status = 'Cancelled'", "taken"],
    ["status = 'Resolved', resolved_at = now()", "taken"],
  ]);
});

describe("at most one", () => {
  test("open commander; another may follow once the first has renounced", () =>
    withIncident(async (tx, { incidentId, commander, reporter }) => {
      const { participantRole } = schema;
      const assume = (inner: Transaction) =>
        inner
          .insert(participantRole)
          .values({ participantId: reporter, incidentId, role: "commander", assumedAt: at });
      expect(await refusal(tx, assume)).toBe("participant_role_one_commander_idx");
      await tx
        .update(participantRole)
        .set({ renouncedAt: at })
        .where(eq(participantRole.participantId, commander));
      expect(await refusal(tx, assume)).toBeUndefined();
    }));

  test("role record per participant, for their own incident and a known role", () =>
    withIncident(async (tx, { incidentId, reporter }) => {
      const role = { participantId: reporter, incidentId, role: "scribe" as const, assumedAt: at };
      const assume = (change: object) => (inner: Transaction) =>
        inner.insert(schema.participantRole).values({ ...role, ...change });
      expect(await refusal(tx, assume({ incidentId: incidentId + 1 }))).toBe(
        "participant_role_participant_fk",
      );
      expect(await refusal(tx, assume({ role: "king" }))).toBe("participant_role_known");
      expect(await refusal(tx, assume({ role: "reporter" }))).toBe("participant_role_open_idx");
      expect(await refusal(tx, assume({}))).toBeUndefined();
    }));

  test("active participant per person; one who left returns as a new participant", () =>
    withIncident(async (tx, { incidentId, alice, commander }) => {
      const { participant } = schema;
      const join = (inner: Transaction) =>
        inner.insert(participant).values({ incidentId, individualId: alice, joinedAt: at });
      expect(await refusal(tx, join)).toBe("participant_active_idx");
      await tx.update(participant).set({ leftAt: at }).where(eq(participant.id, commander));
      expect(await refusal(tx, join)).toBeUndefined();
    }));

  test("reminder per due time, message per delivery, task per item of a document", () =>
    withIncident(async (tx, { incidentId, conversationId, documentId }) => {
      const { statusReportReminder, conversationMessage, task } = schema;
      const remind = (k: number) => (inner: Transaction) =>
        inner.insert(statusReportReminder).values({ incidentId, anchor: at, k, remindedAt: at });
      expect(await refusal(tx, remind(1))).toBe("status_report_reminder_pk");
      expect(await refusal(tx, remind(2))).toBeUndefined();
      const say = (deliveryKey?: string) => (inner: Transaction) =>
        inner.insert(conversationMessage).values({ conversationId, at, text: "Again", deliveryKey });
      expect(await refusal(tx, say("welcome"))).toBe("conversation_message_delivery_idx");
      expect(await refusal(tx, say())).toBeUndefined();
      const found = { incidentId, description: "x", resolveBy: at, documentId, ...stamps };
      const find = (externalId: string) => (inner: Transaction) =>
        inner.insert(task).values({ ...found, externalId });
      expect(await refusal(tx, find("1"))).toBe("task_external_id_idx");
      expect(await refusal(tx, find("2"))).toBeUndefined();
    }));

  test("person per address, in canonical spelling", () =>
    withIncident(async (tx) => {
      const add = (email: string) => (inner: Transaction) =>
        inner.insert(schema.individual).values({ name: "Alice", email, ...stamps });
      expect(await refusal(tx, add("alice@example.com"))).toBe("individual_email_idx");
      for (const email of ["Alice@example.com", "alice", "a lice@example.com", "a@b@c", ""])
        expect(await refusal(tx, add(email))).toBe("individual_email_canonical");
      expect(await refusal(tx, add("élise@exämple.com"))).toBeUndefined();
    }));

  test("individual or team per member and recommendation", () =>
    withIncident(async (tx, { incidentId, groupId, bob, teamId }) => {
      const member = (who: object) => (inner: Transaction) =>
        inner
          .insert(schema.participantGroupMember)
          .values({ participantGroupId: groupId, addedAt: at, ...who });
      expect(await refusal(tx, member({}))).toBe("participant_group_member_is_one");
      expect(await refusal(tx, member({ individualId: bob, teamId }))).toBe(
        "participant_group_member_is_one",
      );
      expect(await refusal(tx, member({ teamId }))).toBeUndefined();
      const recommend = (what: object) => (inner: Transaction) =>
        inner
          .insert(schema.recommendation)
          .values({ incidentId, pluginSlug: "resolver", reasons: [], createdAt: at, ...what });
      expect(await refusal(tx, recommend({}))).toBe("recommendation_of_one");
      expect(await refusal(tx, recommend({ individualId: bob, teamId }))).toBe("recommendation_of_one");
      expect(await refusal(tx, recommend({ teamId }))).toBeUndefined();
    }));

  test("term per id of a source; two sources may have the same word", () =>
    withIncident(async (tx) => {
      const add =
        (values: { source?: string; externalId?: string; deletedAt?: Date }) => (inner: Transaction) =>
          inner.insert(schema.term).values({ text: "data loss", ...values, ...stamps });
      expect(await refusal(tx, add({ source: "glossary", externalId: "1" }))).toBe("term_external_id_idx");
      expect(await refusal(tx, add({ source: "other", externalId: "1" }))).toBeUndefined();
      expect(await refusal(tx, add({ source: "other" }))).toBe("term_source_with_id");
      expect(await refusal(tx, add({}))).toBeUndefined();
      expect(await refusal(tx, add({}))).toBe("term_own_text_idx");
    }));
});

test("referenced records cannot be deleted; an incident's parts are deleted with it", () =>
  withIncident(async (tx, ids) => {
    const { incident, individual, incidentType, service, term, document, task } = schema;
    const remove = (table: PgTable & { id: PgColumn }, id: number) =>
      refusal(tx, (inner) => inner.delete(table).where(eq(table.id, id)));
    expect(await remove(individual, ids.bob)).toBeDefined();
    expect(await remove(incidentType, ids.incidentTypeId)).toBeDefined();
    expect(await remove(service, ids.serviceId)).toBe("incident_type_commander_service_id_service_id_fk");
    expect(await remove(term, ids.termId)).toBe("document_term_term_id_term_id_fk");
    expect(await remove(document, ids.documentId)).toBe("task_document_id_document_id_fk");
    expect(await remove(incident, ids.incidentId)).toBeDefined();
    await tx.delete(task).where(eq(task.id, ids.taskId));
    expect(await remove(document, ids.documentId)).toBeUndefined();
    expect(await remove(incident, ids.incidentId)).toBeUndefined();
    expect(await tx.$count(schema.event)).toBe(0);
    expect(await tx.$count(schema.participantRole)).toBe(0);
  }));

test("a stored response is kept, and a running step can be taken over", () =>
  withIncident(async (tx, { incidentId }) => {
    const key = {
      actor: "alice@example.com",
      method: "POST",
      path: "/incidents/",
      key: "1",
      requestHash: hash,
    };
    const keep = (values: object) => (inner: Transaction) =>
      inner.insert(schema.idempotencyKey).values({ ...key, createdAt: at, expiresAt: at, ...values });
    expect(await refusal(tx, keep({}))).toBe("idempotency_key_lease_of_state");
    expect(await refusal(tx, keep({ state: "Done" }))).toBe("idempotency_key_answer_of_state");
    expect(await refusal(tx, keep({ leaseUntil: at }))).toBeUndefined();
    expect(await refusal(tx, keep({ leaseUntil: at }))).toBe("idempotency_key_pk");
    expect(await refusal(tx, keep({ leaseUntil: at, actor: "bob@example.com" }))).toBeUndefined();
    const { flowStep } = schema;
    const set = (values: object) => (inner: Transaction) =>
      inner.update(flowStep).set(values).where(eq(flowStep.incidentId, incidentId));
    expect(await refusal(tx, set({ state: "Running" }))).toBe("flow_step_lease_of_state");
    expect(await refusal(tx, set({ state: "Done" }))).toBe("flow_step_finished_of_state");
    expect(await refusal(tx, set({ state: "Failed" }))).toBe("flow_step_failed_says_why");
    expect(await refusal(tx, set({ state: "Running", leaseUntil: at }))).toBeUndefined();
  }));
