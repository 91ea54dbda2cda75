import { createHash, createHmac } from "node:crypto";
import postgres from "postgres";

/** The page needs no script of its own. */
export const csr = false;

const sql = postgres(process.env.DATABASE_URL ?? "", { max: 10 });
/** As many as the page of svc shows of each list. */
const most = 100;

interface Request {
  params: { id: string };
  cookies: { get(name: string): string | undefined };
}

/** Everything that the page of svc shows, for the same reader. */
export async function load({ params, cookies }: Request) {
  const secret = cookies.get("svc_session") ?? "";
  const [session] = await sql`
    select user_name from session
    where id_hash = ${createHash("sha256").update(secret).digest()} and expires_at > now()`;
  if (!session) throw new Error("nobody is signed in");
  const user: string = session.user_name;
  const id = Number(params.id);
  const [[incident], events, people, tasks, documents, links, affected, leases, proposed, failed] =
    await Promise.all([
      sql`
        select incident.*, incident_type.name as type, incident_priority.name as priority,
          incident_priority.rank, (select count(*)::int from incident_priority) as priorities,
          (select json_build_object('id', individual.id, 'name', individual.name, 'email', email) from participant_role
           join participant on participant.id = participant_id join individual on individual.id = individual_id
           where participant_role.incident_id = incident.id and role = 'commander' and renounced_at is null) as commander
        from incident
        join incident_type on incident_type.id = incident_type_id
        join incident_priority on incident_priority.id = incident_priority_id
        where incident.id = ${id} and (incident.visibility = 'Open' or exists (
          select from participant join individual on individual.id = individual_id
          where participant.incident_id = incident.id and email = ${user} and left_at is null))`,
      sql`
        select event.id, event.at, event.actor, event.kind, event.description, individual.name as author,
          conditions, actions, needs
        from event
        left join individual on individual.email = event.actor
        left join status_report on event.kind = 'report.written' and status_report.id = (event.data->>'report_id')::bigint
        where event.incident_id = ${id} order by event.at desc, event.id desc limit ${most}`,
      sql`
        select participant.id, individual.name, email,
          (select string_agg(role, ', ') from participant_role
           where participant_id = participant.id and renounced_at is null and role <> 'participant') as roles
        from participant join individual on individual.id = individual_id
        where incident_id = ${id} and left_at is null order by participant.id limit ${most}`,
      sql`
        select task.id, task.description, task.status, resolve_by, email as owner
        from task left join individual on individual.id = owner_id
        where incident_id = ${id} and task.deleted_at is null order by resolve_by limit ${most}`,
      sql`select document.id, document.name from document where incident_id = ${id} order by id desc limit ${most}`,
      sql`
        select incident_link.id, incident_link.kind, incident.id as other_id, name, title from incident_link
        join incident on incident.id = case when incident_id = ${id} then linked_id else incident_id end
        where incident_id = ${id} or linked_id = ${id} limit ${most}`,
      sql`
        select service.id, name from incident_service join service on service.id = service_id
        where incident_service.incident_id = ${id}
        union all
        select application.id, name from incident_application join application on application.id = application_id
        where incident_application.incident_id = ${id}`,
      sql`
        select access_lease.id, slug, user_name, expires_at from access_lease
        join access_role on access_role.id = role_id
        where access_lease.incident_id = ${id} and user_name = ${user} and finished_at is null limit ${most}`,
      sql`
        select document.id as document_id, document.name as document, individual.name, email from recommendation
        left join document on document.id = document_id left join individual on individual.id = individual_id
        where recommendation.incident_id = ${id}`,
      sql`select step, error from flow_step where incident_id = ${id} and (state = 'Failed' or error is not null)`,
    ]);
  if (!incident) throw new Error("no such incident");
  const csrf = createHmac("sha256", secret).update("csrf").digest("base64url");
  return {
    user,
    csrf,
    incident,
    events,
    people,
    tasks,
    documents,
    links,
    affected,
    leases,
    proposed,
    failed,
  };
}
