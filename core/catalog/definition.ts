import { getTableColumns, isNull } from "drizzle-orm";
import { definition, definitionTerm } from "../../drizzle/schema/index.ts";
import { parseProse } from "../../platform/text.ts";
import { type Link, linkedIds, setLinks, toTerm } from "./link.ts";
import { byText, listOf, type Resource } from "./resource.ts";
import { comesFromSource } from "./source.ts";

const links: Link = { owner: definitionTerm.definitionId, to: definitionTerm.termId, target: toTerm };

const { search, ...row } = getTableColumns(definition);
const columns = { ...row, termIds: linkedIds(links, definition.id) };

export interface DefinitionFields {
  text: string;
  termIds: number[];
}

export const definitions: Resource<typeof definition, typeof columns, DefinitionFields> = {
  one: "definition",
  many: "definitions",
  table: definition,
  columns,
  list: listOf("definitions", definition),
  filters: { source: byText("source", definition.source) },
  writers: "members",
  deleted: "definition.deleted",
  taken: {},
  parse: ({ text }) => ({ text: parseProse("text", text) }),
  may: () => isNull(definition.source),
  whyNot: (item) => comesFromSource("definition", item),
  listedBy: "term",
  keep: async (tx, ownerId, { termIds: ids }) =>
    void (await setLinks(tx, links, { field: "term_ids", ownerId, ids })),
};
