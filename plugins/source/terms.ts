import { Type } from "@sinclair/typebox";
import { definePlugin, type TermItem, type UnreadableItem } from "../../core/plugin.ts";
import { Unavailable } from "../../platform/errors.ts";
import { idIn, listIn, orUnreadable, recordIn, textIn } from "./parse.ts";
import { type Location, nameOf } from "./read.ts";
import { openSource, sourceSettings } from "./settings.ts";

/** Of one term: the maximum in a plugin's answer (core/plugin/methods.ts). */
const mostDefinitions = 50;

export default definePlugin({
  title: "Terms from files",
  slug: "term-source",
  version: "1.0.0",
  type: "term",
  author: "svc",
  description: "Reads terms and definitions from files and URLs (YAML, JSON, CSV)",
  configSchema: Type.Object(sourceSettings),
  create(config, deps) {
    const read = openSource(config, deps);
    return { list: async ({ signal }) => termsIn(await read(signal)) };
  },
});

/**
 * Terms are identified by `id`, or by their text without one. Several records of one term add a definition each; if one of
 * them cannot be read, the term cannot be read.
 */
function termsIn(sources: readonly { location: Location; value: unknown }[]): (TermItem | UnreadableItem)[] {
  const terms = new Map<string, TermItem>();
  const unreadable: UnreadableItem[] = [];
  for (const { location, value } of sources) {
    for (const [at, record] of listIn(value, ["terms"], location).entries()) {
      const where = `${nameOf(location)}, record ${at + 1}`;
      const bad = orUnreadable(
        () => addTerm(terms, recordIn(record, where), where),
        () => idOf(recordIn(record, where), where),
      );
      if (bad) unreadable.push(bad);
    }
  }
  for (const { externalId } of unreadable) if (externalId !== undefined) terms.delete(externalId);
  return [...terms.values(), ...unreadable];
}

/** @throws Unavailable, which names the record that cannot be read */
function addTerm(terms: Map<string, TermItem>, record: Record<string, unknown>, where: string): undefined {
  const [externalId, text] = [idOf(record, where), textIn(record, "term", where)];
  if (externalId === undefined || text === undefined) throw new Unavailable(`${where}: it has no term`);
  const term = terms.get(externalId) ?? { externalId, text, definitions: [] };
  if (term.text !== text) throw new Unavailable(`${where}: another term has the same id`);
  const discoverable = booleanIn(record, "discoverable", where);
  if (discoverable !== undefined) term.discoverable = discoverable;
  for (const definition of definitionsIn(record, where)) {
    // Enough for svc to refuse the term. Comparing all of a million would block the worker.
    if (term.definitions.length > mostDefinitions) break;
    if (term.definitions.some((other) => other.text === definition)) continue;
    // Identified by its text, so that two terms can share a definition.
    const id = new Bun.CryptoHasher("sha256").update(definition).digest("hex");
    term.definitions.push({ externalId: id, text: definition });
  }
  terms.set(externalId, term);
}

function idOf(record: Record<string, unknown>, where: string): string | undefined {
  return idIn(record, where) ?? textIn(record, "term", where);
}

function definitionsIn(record: Record<string, unknown>, where: string): string[] {
  const { definitions = [] } = record;
  // In YAML, an alias makes a long list out of two characters, again and again.
  if (Array.isArray(definitions) && definitions.length > mostDefinitions)
    throw new Unavailable(`${where}: it has more than ${mostDefinitions} definitions`);
  if (!Array.isArray(definitions) || definitions.some((one) => typeof one !== "string")) {
    throw new Unavailable(`${where}: definitions is not a list of texts`);
  }
  return [textIn(record, "definition", where) ?? "", ...(definitions as string[])]
    .map((text) => text.trim())
    .filter((text) => text !== "");
}

/** In CSV, a word. */
function booleanIn(record: Record<string, unknown>, key: string, where: string): boolean | undefined {
  const value = record[key];
  if (value === undefined || value === null || value === "") return undefined;
  if (value === true || value === false) return value;
  if (typeof value === "string" && /^(true|false)$/i.test(value)) return value.toLowerCase() === "true";
  throw new Unavailable(`${where}: ${key} must be true or false`);
}
