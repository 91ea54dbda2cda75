import { join } from "node:path";
import { $ } from "bun";
import { openDatabase, openSql } from "../../../drizzle/client.ts";
import { upgrade } from "../../../drizzle/revision/upgrade.ts";
import { loadExample } from "../../../trial/example/load.ts";
import { startDebianPostgres } from "./debian_postgres.ts";

/**
 * Writes previous_release.sql.gz, a database of this release for the test of the next one. When a release has landed, run
 * `node_modules/.bin/bun tests/support/database/record_release.ts` in its tree, and commit the file: its revisions,
 * triggers, the example's first incidents, and a row in each table that the example leaves empty.
 */

const at = "'2026-01-02 03:04:05.678901+00'";
const later = "'2036-01-02 03:04:05.678901+00'";
const id = "'0190a5b0-0000-7000-8000-00000000000";

/** In the order of their references. Tables that a release does not have are left out. */
const rows: Readonly<Record<string, string>> = {
  setting: `(name, value, recorded_by, recorded_at) values ('domain', 'example.com', 'svc', ${at})`,
  session: `(id_hash, user_name, groups, created_at, expires_at) values ('\\x01', 'jane', '{admin,"a, b"}', ${at}, ${later})`,
  sign_in: `(state_hash, session_hash, nonce, pkce_verifier, return_to, created_at, expires_at) values ('\\x02', '\\x01', 'n', 'v', '/', ${at}, ${later})`,
  challenge: `(id, token_hash, user_name, user_code, request_address, client, created_at, expires_at, session_hash, bound_at, approved_at) values (${id}1', '\\x03', 'jane', 'BCDF-GHJK', '192.0.2.1', 'curl/8', ${at}, ${later}, '\\x01', ${at}, ${at})`,
  token: `(jti, challenge_id, user_name, groups, issued_at, expires_at) values (${id}2', ${id}1', 'jane', '{admin}', ${at}, ${later})`,
  signing_key: `(kid, algorithm, public_jwk, private_key, created_at, active_at) values ('k', 'EdDSA', '{"kty":"OKP","x":"é"}', '\\x04', ${at}, ${at})`,
  authority_key: `(kind, name, public, private_key, created_at, active_at) values ('x509', 'default', 'PEM', '\\x05', ${at}, ${at})`,
  client_certificate: `(sha256, serial, jti, authority_key_id, created_at, expires_at) select 'ab', '01', ${id}2', id, ${at}, ${later} from authority_key`,
  issuer_session: `(id, user_name, issuer, subject, created_at) values (${id}3', 'jane', 'https://issuer.example', 'jane', ${at})`,
  access_role: `(slug, description, plugin_slug, settings, secrets, groups, default_duration, max_duration, approval, incident_required, break_glass, created_at, updated_at) values ('db', 'd', 'postgresql-role', '{"role":"r"}', '\\x06', '{dba}', 60, 3600, 'commander', true, true, ${at}, ${at})`,
  access_request: `(role_id, user_name, incident_id, incident_name, reason, duration, state, created_at, expires_at, decided_at, decided_by) select r.id, 'jane', i.id, i.name, 'it''s \\ a "test"', 60, 'Approved', ${at}, ${later}, ${at}, 'joe' from access_role r, (select * from incident order by id limit 1) i`,
  access_lease: `(role_id, request_id, user_name, token_id, name, state, created_at, issued_at, expires_at, max_expires_at) select role_id, id, user_name, ${id}2', 'svc_jane', 'Active', ${at}, ${at}, ${later}, ${later} from access_request`,
  audit_log: `(at, actor, action, address, subject, data) values (${at}, 'user:jane', 'token.revoked', '192.0.2.1', 's', '{"a":1}')`,
  delivery: `(key, task, incident_id, about, individual_id, plugin_slug, subject, text, queued_at, due_at) select 'k', 'incident-daily-summary', i, '{}', p, 'mail', 'S', E'a\\n\\tb', ${at}, ${at} from (select min(id) i from incident) a, (select min(id) p from individual) b`,
  status_report_reminder: `(incident_id, anchor, k, reminded_at) select min(id), ${at}, 1, ${at} from incident`,
  document_version: `(document_id, version, content, author, at) select min(id), 1, 'old', 'jane', ${at} from document`,
  event_revision: `(event_id, version, text, author, at) select min(id), 1, '"old"', 'jane', ${at} from event`,
  idempotency_key: `(actor, method, path, key, request_hash, state, response_status, response_headers, response_body, created_at, expires_at) values ('user:jane', 'POST', '/incidents', 'k', '\\x07', 'Done', 201, '{}', '{}', ${at}, ${later})`,
  incident_application: "select min(i.id), min(a.id) from incident i, application a",
  incident_service: "select min(i.id), min(s.id) from incident i, service s",
  incident_link: `(incident_id, linked_id, kind, created_at) select min(id), max(id), 'related', ${at} from incident`,
  incident_cost: `(incident_id, computed_at, cost, formula_version, seconds, review_hours, rate) select min(i.id), ${at}, 12345678901, min(f.version), 3600, 1.50, 50 from incident i, cost_formula f`,
  run: `(task, slot, state, trigger, owner, started_at, finished_at, result) values ('term-sync', ${at}, 'Done', 'schedule', 'w', ${at}, ${at}, '{"faults":1}')`,
  run_fault: `(task, slot, item, reason) values ('term-sync', ${at}, 'INC-1', 'why')`,
  scheduled_task: `(name, since, paused_at) values ('term-sync', ${at}, ${at})`,
  worker: `(id, host, pid, started_at, seen_at) values ('w', 'h', 1, ${at}, ${at})`,
};

const server = await startDebianPostgres();
await upgrade({ url: server.url });
const client = openDatabase(server.url, 1);
await loadExample(client.db, new Date("2026-01-02T03:04:05.678Z"));
await client.close();
const sql = openSql(server.url, { max: 1 });
// The rest would only be more of the same.
await sql`update document set incident_id = null where incident_id > 6`;
await sql`delete from task where incident_id > 6`;
await sql`delete from incident where id > 6`;
const isThere = async (table: string) => (await sql`select to_regclass(${table}) as oid`)[0]!.oid !== null;
for (const [table, row] of Object.entries(rows)) {
  if ((await isThere(table)) && (await sql`select from ${sql(table)} limit 1`).length === 0)
    await sql.unsafe(`insert into ${table} ${row}`);
}
const tables =
  await sql`select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace`;
for (const { relname } of tables) {
  if ((await sql`select from ${sql(relname)} limit 1`).length === 0)
    throw new Error(`add a row for ${relname}`);
}
await sql.end();
const options = ["--no-owner", "--no-privileges", "--rows-per-insert=200"];
const dump = await $`${join(server.tools, "pg_dump")} ${options} ${server.url}`.text();
// Commands of psql, which a driver cannot send.
const text = dump.replaceAll(/^(\\|SELECT pg_catalog.set_config).*\n/gm, "");
await Bun.write(join(import.meta.dir, "previous_release.sql.gz"), Bun.gzipSync(text, { level: 9 }));
process.exit(0);
