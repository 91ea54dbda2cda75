import { term } from "../../drizzle/schema/index.ts";
import { InvalidInput } from "../../platform/errors.ts";
import { nameLength, parseName, parseProse, parseText } from "../../platform/text.ts";
import { type TermItem, termItem } from "../plugin/methods.ts";
import { keepDefinitions } from "./definitions.ts";
import type { Followed } from "./keep.ts";

/** Terms with their definitions, for term-sync. */
export const followedTerms: Followed<TermItem, { text: string }> = {
  table: term,
  schema: termItem,
  parse: ({ text, definitions }) => {
    for (const one of definitions) {
      parseText("definitions", one.externalId, nameLength);
      parseProse("definitions", one.text);
    }
    const ids = new Set(definitions.map(({ externalId }) => externalId));
    if (ids.size < definitions.length)
      throw new InvalidInput("definitions", "Two definitions have the same id");
    return { text: parseName("text", text) };
  },
  // Each installation decides which words are too common, not the source, once the term exists.
  firstValues: ({ discoverable = true }) => ({ discoverable }),
  keep: async (tx, source, { records }, at) =>
    keepDefinitions(tx, { source, items: records.map(({ item }) => item), at }),
};
