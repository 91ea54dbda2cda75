import { buildVocabulary } from "../../core/catalog/search_words/match.ts";
import type { Next } from "./cast.ts";
import { individualIds, type Organisation, organisation } from "./organisation.ts";

/** What every incident of the example is made from. */
export interface World {
  now: Date;
  seed: string;
  organisation: Organisation;
  next: Next;
  personId: (key: string) => number;
  /** Ids of the terms in a text. */
  termsIn: (text: string) => number[];
}

export function worldAt(now: Date, seed: string): World {
  const made = organisation(now);
  const last = new Map<string, number>([["document", made.documents.length]]);
  const vocabulary = buildVocabulary(
    made.terms.filter(({ discoverable, deletedAt }) => discoverable && deletedAt === null),
  );
  return {
    ...{ now, seed, organisation: made },
    next(kind) {
      const id = (last.get(kind) ?? 0) + 1;
      last.set(kind, id);
      return id;
    },
    personId: individualIds(made.individuals),
    termsIn: (text) => vocabulary.find(text),
  };
}
