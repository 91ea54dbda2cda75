import { describe, expect, test } from "bun:test";
import { sql } from "drizzle-orm";
import { useDatabase } from "../../tests/support/database/database.ts";
import { refusal, withIncidentIn } from "../../tests/support/domain/incident.ts";

const at = new Date("2026-12-01T12:00:00.000Z");

const client = useDatabase(2);

describe("an incident with related records rejects", () => {
  const key =
    "insert into idempotency_key (actor, method, path, key, request_hash, created_at, expires_at, state)";
  test.each([
    ["update team set email = 'Storage@example.com'", "team_email_canonical"],
    ["update service set plugin_slug = null, external_id = '1'", "service_external_id_of_a_plugin"],
    ["update rotation set shift_hours = 0", "rotation_turns"],
    ["update incident_type set visibility = 'Hidden'", "incident_type_visibility_known"],
    ["update incident_priority set reminder_hours = 0", "incident_priority_reminds"],
    ["update document set plugin_slug = null", "document_resource_id_of_a_plugin"],
    ["update document_content set hash = ''", "document_content_hash_is_sha256"],
    ["update document_term set source = 'Guessed'", "document_term_source_known"],
    ["update conversation_message set text = ''", "conversation_message_says_something"],
    ["update status_report_reminder set k = 0", "status_report_reminder_k"],
    ["update flow_step set state = 'Lost'", "flow_step_state_known"],
    [`${key} values ('a', 'POST', '/', '1', '', now(), now(), 'Lost')`, "idempotency_key_state_known"],
    ["update cost_formula set version = 0", "cost_formula_version"],
    ["update cost_formula set yearly_hours = 0", "cost_formula_rate"],
    ["update cost_formula set daily_hours = 25", "cost_formula_hours"],
    ["update cost_formula set review_hours = -1", "cost_formula_review"],
    ["insert into cost_formula_role values (1000, 'king', 1)", "cost_formula_role_known"],
    ["insert into cost_formula_role values (1000, 'scribe', -1)", "cost_formula_role_multiplier"],
    ["update incident set reported_at = 'infinity'", "incident_times"],
    ["update incident set reported_at = '0044-03-15 BC'", "incident_times"],
    ["update task set last_reminder_at = '294276-12-31'", "task_times"],
    ["update participant_role set renounced_at = '-infinity'", "participant_role_times"],
    ["update status_report set created_at = '0099-12-31 23:59Z'", "status_report_times"],
    ["update status_report_reminder set reminded_at = '10000-01-01Z'", "status_report_reminder_times"],
    ["update rotation set starts_at = 'infinity'", "rotation_times"],
    ["update incident_cost set cost = -1", "incident_cost_not_negative"],
  ])("%s: %s", (query, constraint) =>
    withIncidentIn(client.db, at, async (tx) => {
      expect(await refusal(tx, (inner) => inner.execute(sql.raw(query)))).toBe(constraint);
    }),
  );
});

describe("a duplicate row violates", () => {
  const times = "created_at, updated_at";
  const now = "now(), now()";
  const whole = "participant_group_id, individual_id, team_id, added_at";
  const reason = "plugin_slug, reasons, created_at";
  test.each([
    ["team_name_idx", `team (name, ${times}) values ('x', ${now})`],
    ["service_name_idx", `service (name, ${times}) values ('x', ${now})`],
    [
      "service_external_id_idx",
      `service (name, plugin_slug, external_id, ${times}) values (gen_random_uuid(), 'p', '1', ${now})`,
    ],
    ["incident_type_name_idx", `incident_type (name, ${times}) values ('x', ${now})`],
    [
      "incident_priority_name_idx",
      `incident_priority (name, reminder_hours, ${times}) values ('x', 1, ${now})`,
    ],
    [
      "incident_name_idx",
      `incident (name, title, description, incident_type_id, incident_priority_id, reported_at, ${times})
        select 'x', title, description, incident_type_id, incident_priority_id, ${now}, now() from incident limit 1`,
    ],
    ["application_own_name_idx", `application (name, ${times}) values ('x', ${now})`],
    [
      "application_external_id_idx",
      `application (name, source, external_id, ${times}) values ('x', 's', '1', ${now})`,
    ],
    [
      "definition_external_id_idx",
      `definition (text, source, external_id, ${times}) values ('x', 's', '1', ${now})`,
    ],
    [
      "document_resource_id_idx",
      `document (name, resource_type, plugin_slug, resource_id, ${times}) values ('x', 'x', 'p', '2', ${now})`,
    ],
    [
      "conversation_incident_idx",
      "conversation (incident_id, plugin_slug, created_at) select id, 'p', now() from incident",
    ],
    [
      "participant_group_incident_idx",
      "participant_group (incident_id, plugin_slug, name, created_at) select id, 'p', 'x', now() from incident",
    ],
    [
      "participant_group_member_individual_once_idx",
      `participant_group_member (${whole}) select g.id, i.id, null, now() from participant_group g, individual i
        where i.name = 'bob'`,
    ],
    [
      "participant_group_member_team_once_idx",
      `participant_group_member (${whole}) select g.id, null, t.id, now() from participant_group g, team t`,
    ],
    [
      "recommendation_document_once_idx",
      `recommendation (incident_id, document_id, ${reason}) select incident_id, id, 'p', '[]', now() from document`,
    ],
    [
      "recommendation_individual_once_idx",
      `recommendation (incident_id, individual_id, ${reason})
        select incident_id, individual_id, 'p', '[]', now() from participant`,
    ],
    [
      "recommendation_team_once_idx",
      `recommendation (incident_id, team_id, ${reason}) select i.id, t.id, 'p', '[]', now() from incident i, team t`,
    ],
  ])("%s", (index, row) =>
    withIncidentIn(client.db, at, async (tx) => {
      const insert = sql.raw(`insert into ${row}`);
      expect((await tx.execute(insert)).count).toBeGreaterThan(0);
      expect(await refusal(tx, (inner) => inner.execute(insert))).toBe(index);
    }),
  );

  // An incident has one conversation and one group per plugin, so their ids collide only between incidents.
  test.each(["conversation", "participant_group"])("%s_external_id_idx", (table) =>
    withIncidentIn(client.db, at, async (tx) => {
      await tx.execute(sql.raw(`update ${table} set external_id = 'x'`));
      await tx.execute(sql`
        insert into incident (title, description, incident_type_id, incident_priority_id, reported_at, created_at, updated_at)
        select title, description, incident_type_id, incident_priority_id, now(), now(), now() from incident`);
      const name = table === "conversation" ? ["", ""] : [", name", ", 'x'"];
      const again = sql.raw(`
        insert into ${table} (incident_id, plugin_slug, external_id, created_at${name[0]})
        select max(i.id), plugin_slug, external_id, now()${name[1]} from ${table}, incident i group by ${table}.id`);
      expect(await refusal(tx, (inner) => inner.execute(again))).toBe(`${table}_external_id_idx`);
    }),
  );

  test.each(["term", "definition", "application"])(
    "a %s has both a source and an external id, or neither",
    (table) =>
      withIncidentIn(client.db, at, async (tx) => {
        const text = table === "application" ? "name" : "text";
        const insert = sql.raw(`insert into ${table} (${text}, source, ${times}) values ('x', 's', ${now})`);
        expect(await refusal(tx, (inner) => inner.execute(insert))).toBe(`${table}_source_with_id`);
      }),
  );
});

test("every name fits into PostgreSQL's 63 bytes, which silently truncates longer ones", async () => {
  const cut = await client.db.execute(sql`
    select conname as name from pg_constraint where octet_length(conname::text) >= 63
    union all select relname from pg_class where octet_length(relname::text) >= 63 and relname !~ '^pg_'`);
  expect([...cut]).toEqual([]);
});

test("every foreign key has an index for finding references to a record", async () => {
  const bare = await client.db.execute(sql`
    select c.conname from pg_constraint c
    where c.contype = 'f' and c.connamespace = 'public'::regnamespace and not exists (
      select from pg_index i where i.indrelid = c.conrelid and i.indpred is null
        and (i.indkey::int2[])[0:cardinality(c.conkey) - 1] @> c.conkey)`);
  expect([...bare]).toEqual([]);
});
