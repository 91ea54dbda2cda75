import { openDatabase, openSql } from "../../drizzle/client.ts";
import { schemaStatus } from "../../drizzle/revision/status.ts";
import { createLog } from "../../platform/log.ts";
import { usualHeaders } from "../../server/http/security_headers.ts";
import { shared } from "../../server/http/shared.ts";

// What the same Bun and PostgreSQL can do without an application: the rows that our answers show, read with one statement
// by postgres.js, and sent as JSON. With BENCH_ALIKE it also sends our headers, and writes the log line of each request
// (none for /healthcheck). The difference is then the cost of everything else: the router, validation, and who asks and what
// they may read.

const { SVC_DATABASE_URL = "", BENCH_ALIKE, BENCH_PORT = "0", BENCH_POOL_SIZE = "1" } = process.env;
const { db } = openDatabase(SVC_DATABASE_URL, 1);
const sql = openSql(SVC_DATABASE_URL, { max: Number(BENCH_POOL_SIZE) });
const log = createLog("info");
const prefix = crypto.randomUUID().slice(0, 13);
let count = 0;
const schemaNow = shared(() => schemaStatus(db), { goodFor: 100, isGood: ({ state }) => state === "ok" });

async function health(): Promise<object> {
  const { state, current, head } = await schemaNow();
  return { status: "ok", database: "ok", keys: "ok", revision: { status: state, current, head } };
}

const whoami = () => ({
  user: "user1@example.com",
  groups: [],
  admin: false,
  expires_at: "2026-12-01T12:00:00.000Z",
});

async function documentOf(id: string): Promise<object | undefined> {
  const [found] = await sql`
    select id::float8, name, description, resource_type, plugin_slug, resource_id, weblink, incident_id::float8, version,
      created_at, updated_at,
      array(select incident_type_id::int from document_incident_type where document_id = document.id) as incident_type_ids,
      array(select incident_priority_id::int from document_incident_priority where document_id = document.id)
        as incident_priority_ids,
      array(select term_id::int from document_term where document_id = document.id and source = 'Given') as term_ids
    from document where id = ${id}`;
  return found;
}

async function incidentOf(id: string): Promise<object | undefined> {
  const [found] = await sql`
    select incident.id::float8, incident.name, title, incident.description, status, incident.visibility,
      incident_type_id::float8, incident_priority_id::float8, resolution, reported_at, stable_at, closed_at,
      impact_started_at, impact_ended_at, cost::float8, incident.version, incident.created_at, incident.updated_at,
      json_build_object('id', incident_type.id, 'name', incident_type.name) as incident_type,
      json_build_object('id', incident_priority.id, 'name', incident_priority.name) as incident_priority,
      ${holder(sql`role = 'commander' and renounced_at is null`)} as commander,
      ${holder(sql`role = 'reporter' order by participant_role.id limit 1`)} as reporter,
      ${list(
        sql`'step', step, 'state', state, 'attempts', attempts, 'error', error, 'due_at', due_at,
        'finished_at', finished_at`,
        sql`flow_step`,
      )} as steps,
      ${list(
        sql`'plugin_slug', plugin_slug, 'external_id', external_id, 'weblink', weblink,
        'archived_at', archived_at`,
        sql`conversation`,
      )} as conversations,
      ${list(sql`'plugin_slug', plugin_slug, 'name', name, 'email', email, 'weblink', weblink`, sql`participant_group`)}
        as participant_groups,
      ${proposed("document", sql`'document_id', document.id, 'name', document.name, 'weblink', weblink`)} as documents,
      ${proposed("individual", sql`'individual_id', individual.id, 'name', individual.name, 'email', email`)}
        as individuals,
      ${proposed("team", sql`'team_id', team.id, 'name', team.name`)} as teams
    from incident
    join incident_type on incident_type.id = incident_type_id
    join incident_priority on incident_priority.id = incident_priority_id
    where incident.id = ${id}`;
  return found;
}

type Part = ReturnType<typeof sql>;

const holder = (role: Part) => sql`(
  select json_build_object('id', individual.id, 'name', individual.name, 'email', email)
  from participant_role
  join participant on participant.id = participant_id
  join individual on individual.id = individual_id
  where participant_role.incident_id = incident.id and ${role})`;

const list = (object: Part, table: Part) =>
  sql`(select coalesce(json_agg(json_build_object(${object})), '[]') from ${table} where incident_id = incident.id)`;

const proposed = (table: "document" | "individual" | "team", object: Part) => sql`(
  select coalesce(json_agg(json_build_object(${object}, 'plugin_slug', recommendation.plugin_slug, 'reasons', reasons)), '[]')
  from recommendation join ${sql(table)} on ${sql(table)}.id = ${sql(`${table}_id`)}
  where recommendation.incident_id = incident.id)`;

/** Answers one route: with what `read` returns for the id in the path. */
function answer(route: string, read: (id: string) => object | undefined | Promise<object | undefined>) {
  if (!BENCH_ALIKE) return async ({ params }: Bun.BunRequest) => Response.json(await read(params.id!));
  return async (request: Bun.BunRequest, server: Bun.Server<undefined>) => {
    const [begin, address] = [performance.now(), server.requestIP(request)?.address];
    count += 1;
    const id = `${prefix}-${count.toString(36)}`;
    const found = await read(request.params.id!);
    const status = found ? 200 : 404;
    const response = Response.json(found ?? null, {
      status,
      headers: { ...usualHeaders, "x-request-id": id },
    });
    const line = () => {
      const duration = Math.round((performance.now() - begin) * 10) / 10;
      log.info(
        {
          request_id: id,
          method: request.method,
          route,
          status,
          duration_ms: duration,
          user: "user1@example.com",
          address,
        },
        "request",
      );
    };
    if (route !== "/healthcheck") setImmediate(line);
    return response;
  };
}

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: Number(BENCH_PORT),
  routes: {
    "/healthcheck": answer("/healthcheck", health),
    "/whoami": answer("/whoami", whoami),
    "/documents/:id": answer("/documents/:document_id", documentOf),
    "/incidents/:id": answer("/incidents/:incident_id", incidentOf),
  },
});
console.log(`bare on http://127.0.0.1:${server.port}`);
