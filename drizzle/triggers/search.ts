import type { Trigger } from "./index.ts";

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

export const searchTriggers: readonly Trigger[] = [
  ...Object.entries(searched).map(([table, columns]) =>
    searchTrigger(table, Object.keys(columns), (row) =>
      vector(Object.entries(columns).map(([column, weight]) => [`${row}.${column}`, weight] as const)),
    ),
  ),
  ...documents,
];
