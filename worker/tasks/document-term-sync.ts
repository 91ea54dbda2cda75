import { setImmediate as othersTurn } from "node:timers/promises";
import pLimit from "p-limit";
import { readVocabulary } from "../../core/catalog/search_words/vocabulary.ts";
import { ownTextSlug, ownTexts, pageOfTexts, type TextPlace } from "../../core/incident/document/texts.ts";
import { documentFacts } from "../../core/incident/incident/facts.ts";
import { type Finding, findTerms, isRead, keepFindings } from "../../core/sync/document_terms.ts";
import { Asking } from "../ask.ts";
import { byHalves } from "../batches.ts";
import { recordFailure, type ScheduledTask, type TaskContext, workOnItem } from "../task.ts";

/** Documents per page. */
const page = 500;
/** Texts read at a time. Each may have a million characters. */
const batch = 50;
/** Texts fetched concurrently. */
const concurrency = 4;

const nameOf = (id: number) => `document ${id}`;

/** Links each document to the terms in its text. A text that was already searched for the current terms is skipped. */
export const documentTermSync: ScheduledTask = {
  async run(context) {
    const { db, signal, transaction } = context;
    const { name, vocabulary } = await readVocabulary(db);
    const asking = new Asking(context);
    const read = textReader(context, asking);
    const result = { done: 0, skipped: 0, failed: 0 };
    let last = 0;
    for (;;) {
      const places = await pageOfTexts(db, { vocabulary: name, afterId: last, limit: page });
      for (let at = 0; at < places.length; at += batch) {
        signal.throwIfAborted();
        const part = places.slice(at, at + batch);
        const texts = await read(part);
        const findings: Finding[] = [];
        for (const place of part) {
          const text = texts.get(place.id);
          if (text === undefined) {
            result.failed += 1;
            continue;
          }
          const found = await workOnItem(context, nameOf(place.id), async () =>
            findTerms(place.id, text, vocabulary),
          );
          await othersTurn();
          if ("failure" in found) {
            result.failed += 1;
            continue;
          }
          const finding = found.value;
          if (isRead(place, finding.hash, name)) result.skipped += 1;
          else findings.push(finding);
        }
        await byHalves(
          signal,
          findings,
          async (some) => {
            await transaction((tx) => keepFindings(tx, some, name));
            result.done += some.length;
          },
          ({ documentId }, error) => {
            recordFailure(context, nameOf(documentId), error);
            result.failed += 1;
          },
        );
      }
      if (places.length < page) return result;
      last = places.at(-1)!.id;
    }
  },
};

/**
 * Returns a reader of texts by document id: null means that the text is gone; one that could not be read is missing.
 */
function textReader(context: TaskContext, asking: Asking) {
  const { db } = context;
  const ask = async (place: TextPlace): Promise<string | null> => {
    const plugin = asking.chosen("document", place.pluginSlug);
    const document = documentFacts(place);
    const answer = document && (await asking.ask(plugin, "text", { document }));
    return answer?.text ?? null;
  };
  return async (places: readonly TextPlace[]): Promise<Map<number, string | null>> => {
    const [own, others] = [[], []] as [TextPlace[], TextPlace[]];
    for (const place of places) (place.pluginSlug === ownTextSlug ? own : others).push(place);
    const kept = await ownTexts(
      db,
      own.map(({ id }) => id),
    );
    const texts = new Map<number, string | null>(own.map(({ id }) => [id, kept.get(id) ?? null]));
    await pLimit(concurrency).map(others, async (place) => {
      const answer = await workOnItem(context, nameOf(place.id), () => ask(place));
      if ("value" in answer) texts.set(place.id, answer.value);
    });
    return texts;
  };
}
