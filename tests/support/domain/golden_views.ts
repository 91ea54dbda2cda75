import { sql } from "drizzle-orm";
import type { Database } from "../../../drizzle/client.ts";

/** A row as readers see it: its name and its fields, without ids, which are random. */
interface Shown {
  name: string;
  fields: Record<string, string>;
}

/** The rows that a run may change, by table and id. */
type Picture = Map<string, Map<string, Shown>>;

const minute = (column: string) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"')`;

const views = {
  tasks: `
    select t.id, i.name || ' "' || t.description || '"' as name, jsonb_build_object(
      'status', t.status, 'due', ${minute("t.resolve_by")}, 'document', d.name,
      'for', (select string_agg(p.email, ', ' order by p.email) from task_assignee a
              join individual p on p.id = a.individual_id where a.task_id = t.id),
      'reminded', ${minute("t.last_reminder_at")}, 'gone', ${minute("t.deleted_at")}) as fields
    from task t join incident i on i.id = t.incident_id left join document d on d.id = t.document_id`,
  costs: `
    select i.id, i.name, jsonb_build_object('cost', i.cost, 'of', c.numbers) as fields
    from incident i left join lateral (
      select format('%s s + %s h of review, at %s an hour', seconds, review_hours, rate) as numbers
      from incident_cost where incident_id = i.id order by id desc limit 1) c on true`,
  terms: `
    select t.id, t.text as name, jsonb_build_object('source', t.source, 'gone', ${minute("t.deleted_at")},
      'means', (select string_agg(d.text, ' / ' order by d.text) from definition_term l
                join definition d on d.id = l.definition_id where l.term_id = t.id)) as fields
    from term t`,
  "terms in documents": `
    select d.id, d.name, jsonb_build_object('terms', string_agg(t.text, ', ' order by t.text)) as fields
    from document d join document_term l on l.document_id = d.id join term t on t.id = l.term_id group by d.id`,
  applications: `
    select id, name, jsonb_build_object('source', source, 'at', uri, 'gone', ${minute("deleted_at")},
      'is', description) as fields
    from application`,
  timeline: `
    select e.id, i.name || ' ' || e.kind || ' by ' || e.actor || ': ' || e.description as name,
      '{}'::jsonb as fields
    from event e join incident i on i.id = e.incident_id`,
} as const;

export async function takePicture(db: Database): Promise<Picture> {
  const picture: Picture = new Map();
  for (const [what, query] of Object.entries(views)) {
    const rows = await db.execute<{ id: string; name: string; fields: Record<string, unknown> }>(
      sql.raw(query),
    );
    picture.set(
      what,
      new Map(
        rows.map(({ id, name, fields }) => {
          const said = Object.entries(fields).filter(([, value]) => value !== null);
          return [id, { name, fields: Object.fromEntries(said.map(([key, value]) => [key, String(value)])) }];
        }),
      ),
    );
  }
  return picture;
}

const byName = new Intl.Collator("en", { numeric: true }).compare;

/** The new (`+`), deleted (`-`) and changed rows (`~`, with both values) of each table. */
export function changesOf(before: Picture, after: Picture): string[] {
  return [...after].flatMap(([what, rows]) => {
    const old = before.get(what) ?? new Map<string, Shown>();
    const said = ({ name, fields }: Shown) =>
      [name, ...Object.entries(fields).map(([key, value]) => `${key}: ${value}`)].join("; ");
    const lines = [
      ...[...rows].flatMap(([id, row]) => {
        const was = old.get(id);
        if (!was) return [`+ ${said(row)}`];
        const keys = [...new Set([...Object.keys(was.fields), ...Object.keys(row.fields)])].sort();
        const changed = keys.filter((key) => was.fields[key] !== row.fields[key]);
        const fields = changed.map((key) => [key, `${was.fields[key] ?? "-"} => ${row.fields[key] ?? "-"}`]);
        if (was.name !== row.name) fields.unshift(["was", was.name]);
        return fields.length > 0 ? [`~ ${said({ name: row.name, fields: Object.fromEntries(fields) })}`] : [];
      }),
      ...[...old].filter(([id]) => !rows.has(id)).map(([, row]) => `- ${said(row)}`),
    ];
    if (lines.length === 0) return [];
    return [`${what}:`, ...lines.sort((a, b) => byName(a.slice(2), b.slice(2))).map((line) => `  ${line}`)];
  });
}
