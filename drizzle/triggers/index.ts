/** Every trigger of ours, and its function, is named so; what is and is not defined here is removed. */
export const triggerPrefix = "svc_";

/**
 * A trigger for each row, and its function. Never for certain columns only (UPDATE OF): PostgreSQL then refuses to
 * change their type or to drop them, and revisions do both.
 */
export interface Trigger {
  name: string;
  table: string;
  /** The columns of the table that the function speaks of; without one of them there is no trigger. */
  needs: readonly string[];
  timing: "before" | "after";
  events: readonly ("insert" | "update" | "delete")[];
  function: string;
  /** The function's body, in PL/pgSQL. Names in it are qualified, for the search path is the caller's. */
  body: string;
  /** The column that it derives, and the expression over the row's other columns. */
  fill?: { column: string; value: string };
}

/**
 * Tells every server process that a challenge was decided, so that a held poll is answered at once and a remembered
 * `pending` is forgotten. The payload is the hash that is stored, in hex: it opens nothing.
 */
const challengeDecided: Trigger = {
  name: "svc_challenge_decided",
  table: "challenge",
  needs: ["token_hash", "approved_at", "denied_at", "collected_at", "expires_at"],
  timing: "after",
  events: ["update", "delete"],
  function: "svc_challenge_decided",
  body: `
begin
  if tg_op = 'DELETE' or (new.approved_at, new.denied_at, new.collected_at, new.expires_at)
    is distinct from (old.approved_at, old.denied_at, old.collected_at, old.expires_at) then
    perform pg_catalog.pg_notify('svc_challenge', pg_catalog.encode(old.token_hash, 'hex'));
  end if;
  return null;
end
`,
};

/** Tells of each line of an incident's timeline, for whoever follows one: `<incident id> <event id>`. */
const eventWritten: Trigger = {
  name: "svc_event_written",
  table: "event",
  needs: ["id", "incident_id"],
  timing: "after",
  events: ["insert"],
  function: "svc_event_written",
  body: `
begin
  perform pg_catalog.pg_notify('svc_event', pg_catalog.concat_ws(' ', new.incident_id, new.id));
  return null;
end
`,
};

/** PostgreSQL's weights: a word found under A counts most. */
type Weight = "A" | "B" | "C" | "D";

/** The columns of which a table's `search` is made. What a search finds is decided here and nowhere else. */
const searched: Readonly<Record<string, Readonly<Record<string, Weight>>>> = {
  incident: { name: "A", title: "A", description: "B", resolution: "C" },
  incident_type: { name: "A", description: "B" },
  individual: { name: "A", email: "B" },
  team: { name: "A", description: "B", email: "C" },
  service: { name: "A", description: "B" },
  task: { description: "A" },
  term: { text: "A" },
  definition: { text: "A" },
  application: { name: "A", description: "B", uri: "C" },
};

/** Stemming and stop words; the same in a query, or it finds nothing. */
const language = "pg_catalog.english";

/** Characters of all columns. A tsvector holds 1 MB at most, a letter takes up to 4 bytes, and a longer one makes the write fail. */
const longest = 200_000;

/** The words of some texts, weighted; each an SQL expression. */
function vector(texts: readonly (readonly [string, Weight])[]): string {
  const share = Math.floor(longest / texts.length);
  return texts
    .map(([text, weight]) => {
      const words = `pg_catalog.to_tsvector('${language}', pg_catalog.left(coalesce(${text}, ''), ${share}))`;
      return `pg_catalog.setweight(${words}, '${weight}')`;
    })
    .join(" || ");
}

/** An update that changes none of these texts costs nothing; one that sets `search` to null asks for it anew. */
function searchTrigger(table: string, columns: readonly string[], value: (row: string) => string): Trigger {
  const values = (row: string) => columns.map((column) => `${row}.${column}`).join(", ");
  return {
    name: `svc_${table}_search`,
    table,
    needs: [...columns, "search"],
    timing: "before",
    events: ["insert", "update"],
    function: `svc_${table}_search`,
    body: `
begin
  if tg_op = 'INSERT' or new.search is null or (${values("new")}) is distinct from (${values("old")}) then
    new.search := ${value("new")};
  end if;
  return new;
end
`,
    fill: { column: "search", value: value(table) },
  };
}

/** A document is found by its text as well, which the built-in document plugin keeps in another table. */
const documents: readonly Trigger[] = [
  searchTrigger("document", ["id", "name", "description"], (row) =>
    vector([
      [`${row}.name`, "A"],
      [`${row}.description`, "B"],
      [`(select c.content from public.document_content c where c.document_id = ${row}.id)`, "D"],
    ]),
  ),
  {
    name: "svc_document_content_search",
    table: "document_content",
    needs: ["document_id", "content"],
    timing: "after",
    events: ["insert", "update", "delete"],
    function: "svc_document_content_search",
    body: `
begin
  if tg_op = 'DELETE' then
    update public.document set search = null where id = old.document_id;
  elsif tg_op = 'INSERT' or new.content is distinct from old.content then
    update public.document set search = null where id = new.document_id;
  end if;
  return null;
end
`,
  },
];

const searchTriggers: readonly Trigger[] = [
  ...Object.entries(searched).map(([table, columns]) =>
    searchTrigger(table, Object.keys(columns), (row) =>
      vector(Object.entries(columns).map(([column, weight]) => [`${row}.${column}`, weight] as const)),
    ),
  ),
  ...documents,
];

/** The one definition of all triggers: `svc database upgrade` and `sync-triggers` make the database agree with it. */
export const triggers: readonly Trigger[] = [challengeDecided, eventWritten, ...searchTriggers];
