import { restrictedMark } from "../schema/columns.ts";

/**
 * A row-level trigger and its function. Never limited to columns (UPDATE OF): PostgreSQL then refuses to change their
 * type or to drop them, and revisions do both.
 */
export interface Trigger {
  /** Also of its function. */
  name: string;
  table: string;
  /** The columns that the function uses; if one is missing, there is no trigger. */
  needs: readonly string[];
  timing: "before" | "after";
  events: readonly ("insert" | "update" | "delete")[];
  /** The function's body, in PL/pgSQL. It qualifies all names, because the search path is the caller's. */
  body: string;
  /** The derived column, and an expression over the row's other columns. */
  fill?: { column: string; value: string };
}

/**
 * Notifies every server process when a challenge is decided, so that a held poll is answered immediately and a cached
 * `pending` is invalidated. The payload is the stored hash in hex, which grants no access.
 */
const challengeDecided: Trigger = {
  name: "svc_challenge_decided",
  table: "challenge",
  needs: ["token_hash", "approved_at", "denied_at", "collected_at", "expires_at"],
  timing: "after",
  events: ["update", "delete"],
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

/** Notifies every server process when what it may remember of an access token has changed. The payload is its id. */
const tokenChanged: Trigger = {
  name: "svc_token_changed",
  table: "token",
  needs: ["jti", "user_name", "groups", "expires_at", "revoked_at"],
  timing: "after",
  events: ["update", "delete"],
  body: `
begin
  if tg_op = 'DELETE' or (new.jti, new.user_name, new.groups, new.expires_at, new.revoked_at)
    is distinct from (old.jti, old.user_name, old.groups, old.expires_at, old.revoked_at) then
    perform pg_catalog.pg_notify('svc_token', old.jti::pg_catalog.text);
  end if;
  return null;
end
`,
};

/** PostgreSQL's weights: A ranks highest. */
type Weight = "A" | "B" | "C" | "D";

/** The columns that make up a table's `search`. This alone determines what a search finds. */
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
  status_report: { conditions: "A", actions: "A", needs: "A" },
  conversation_message: { text: "A" },
};

/** Defines stemming and stop words; queries must use the same, or they find nothing. */
const language = "pg_catalog.english";

/**
 * In characters, over all columns. A tsvector holds at most 1 MB, a letter takes up to 4 bytes, and a longer value
 * makes the write fail.
 */
const longest = 200_000;

/**
 * Compatible spellings are one (NFKC), as in queries (core/list/page.ts): a file name from macOS writes `é` as two
 * characters. ASCII is left as it is, which saves a third of the time, and so is what is not UTF-8, where PostgreSQL
 * cannot do this.
 */
function unified(text: string): string {
  const isAscii = `pg_catalog.octet_length(${text}) = pg_catalog.length(${text})`;
  const isOther = `${isAscii} or pg_catalog.getdatabaseencoding() <> 'UTF8'`;
  return `case when ${isOther} then ${text} else pg_catalog.normalize(${text}, 'NFKC') end`;
}

/** Characters: the parser's time grows with the square of this, and a run's with its length. */
const piece = 255;
const piecesAtOnce = 32;

/**
 * PostgreSQL's parser reads a text without spaces again from many of its characters, such as `a_a_a_`, and one with several
 * `<!--` from each to the end: 16,000 characters took seconds. So long runs get spaces, and comments are read as text.
 * Letters and digits alone are read once.
 *
 * A regular expression finds such a run quickly, but would take 0.1 ms for each space. `substr` counts characters from the
 * beginning, hence two steps.
 */
function quickToParse(text: string): string {
  const part = piece * piecesAtOnce;
  const parts = `select pg_catalog.substr(word, 1 + ${part} * i, ${part}) as part
    from pg_catalog.generate_series(0, pg_catalog.length(word) / ${part}) i offset 0`;
  const pieces = `select pg_catalog.string_agg(pg_catalog.substr(part, 1 + ${piece} * i, ${piece}), ' ')
    from (${parts}) parts, pg_catalog.generate_series(0, ${piecesAtOnce - 1}) i`;
  const words = `pg_catalog.string_to_array(pg_catalog.translate(given, E'\\n\\r\\t', '   '), ' ')`;
  const isQuick = `pg_catalog.length(word) < ${piece} or word !~ '[^[:alnum:]]'`;
  const separated = `select pg_catalog.string_agg(case when ${isQuick} then word else (${pieces}) end, ' ')
    from pg_catalog.unnest(${words}) word`;
  return `(select case when given ~ E'[^ \\n\\r\\t]{${piece}}' then (${separated}) else given end
    from (select ${withoutComments(text)} as given offset 0) texts)`;
}

/** `<!--` begins no comment, which would be left out. */
const withoutComments = (text: string) => `pg_catalog.replace(${text}, '<!--', ' ')`;

/** The weighted words of several texts, given as SQL expressions. */
function vector(texts: readonly (readonly [string, Weight])[], prepare = quickToParse): string {
  const share = Math.floor(longest / texts.length);
  return texts
    .map(([text, weight]) => {
      const part = `pg_catalog.left(${unified(`coalesce(${text}, '')`)}, ${share})`;
      const words = `pg_catalog.to_tsvector('${language}', ${prepare(part)})`;
      return `pg_catalog.setweight(${words}, '${weight}')`;
    })
    .join(" || ");
}

/** The column that leads to the incident of a record whose words are hidden with it, and that incident's id. */
const partOfIncident: Readonly<Record<string, readonly [column: string, id: (row: string) => string]>> = {
  document: ["incident_id", (row) => `${row}.incident_id`],
  task: ["incident_id", (row) => `${row}.incident_id`],
  // The other events have no words.
  event: ["incident_id", (row) => `case when ${row}.kind = 'note' then ${row}.incident_id end`],
  status_report: ["incident_id", (row) => `${row}.incident_id`],
  conversation_message: [
    "conversation_id",
    (row) => `(select c.incident_id from public.conversation c where c.id = ${row}.conversation_id)`,
  ],
};

const mark = `'''${restrictedMark}'''::pg_catalog.tsvector`;

/** Skips the work for an update that changes none of these texts; setting `search` to null recomputes it. */
function searchTrigger(
  table: string,
  texts: readonly string[],
  value: (row: string, prepare?: (text: string) => string) => string,
): Trigger {
  const [incidentColumn, incidentId] = partOfIncident[table] ?? [];
  const columns = incidentColumn ? [...texts, incidentColumn] : texts;
  const restricted = (row: string) =>
    `select from public.incident i where i.id = ${incidentId!(row)} and i.visibility = 'Restricted'`;
  const values = (row: string) => columns.map((column) => `${row}.${column}`).join(", ");
  const lengths = columns.map((column) => `pg_catalog.octet_length(new.${column}::pg_catalog.text)`);
  return {
    name: `svc_${table}_search`,
    table,
    needs: [...columns, "search"],
    timing: "before",
    events: ["insert", "update"],
    body: `
begin
  if tg_op = 'INSERT' or new.search is null or (${values("new")}) is distinct from (${values("old")}) then
    -- An expression without a subquery takes a third of the time.
    if greatest(${lengths.join(", ")}) < ${piece} then
      new.search := ${value("new", withoutComments)};
    else
      new.search := ${value("new")};
    end if;${
      // The lock is the one that a foreign key takes. It waits for a change of the visibility, which a new statement sees.
      incidentId
        ? `
    perform ${restricted("new").replace("select ", "")} for key share of i;
    if found and exists (${restricted("new")}) then
      new.search := new.search || ${mark};
    end if;`
        : ""
    }
  end if;
  return new;
end
`,
    fill: {
      column: "search",
      value: incidentId
        ? `${value(table)} || case when exists (${restricted(table)}) then ${mark} else ''::pg_catalog.tsvector end`
        : value(table),
    },
  };
}

/** A document is also found by its text, which the built-in document plugin stores in another table. */
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

/**
 * Marks the records of an incident again when its visibility changes. The lock waits for transactions that have added some,
 * and holds up those that are about to.
 */
const visibilityChanged: Trigger = {
  name: "svc_incident_visibility",
  table: "incident",
  needs: ["id", "visibility"],
  timing: "after",
  events: ["update"],
  body: `
begin
  if new.visibility is distinct from old.visibility then
    perform from public.incident where id = new.id for update;
    update public.document set search = null where incident_id = new.id;
    update public.task set search = null where incident_id = new.id;
    update public.event set search = null where incident_id = new.id and kind = 'note';
    update public.status_report set search = null where incident_id = new.id;
    update public.conversation_message set search = null
      where conversation_id in (select c.id from public.conversation c where c.incident_id = new.id);
  end if;
  return null;
end
`,
};

const searchTriggers: readonly Trigger[] = [
  ...Object.entries(searched).map(([table, columns]) =>
    searchTrigger(table, Object.keys(columns), (row, prepare) =>
      vector(
        Object.entries(columns).map(([column, weight]) => [`${row}.${column}`, weight] as const),
        prepare,
      ),
    ),
  ),
  ...documents,
  // Of events, only notes are found: the others tell of records that are found themselves.
  searchTrigger(
    "event",
    ["kind", "description"],
    (row, prepare) =>
      `case when ${row}.kind = 'note' then ${vector([[`${row}.description`, "A"]], prepare)} else ''::pg_catalog.tsvector end`,
  ),
];

/**
 * The single definition of all triggers: `svc database upgrade` and `sync-triggers` bring the database in line with it.
 */
export const triggers: readonly Trigger[] = [
  challengeDecided,
  tokenChanged,
  ...searchTriggers,
  visibilityChanged,
];
