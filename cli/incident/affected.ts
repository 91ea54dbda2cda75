import { NotFound } from "../../platform/errors.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import { IncidentClient, type Named, nearestNamed } from "./incident.ts";
import { done, splitWords, type WordOptions } from "./write.ts";

/** What an incident affects, from the catalog. */
export interface Affected {
  services: Named[];
  applications: Named[];
}

type Kind = keyof Affected;

/** `svc incident affected add` and `remove` */
export async function affectedCommand(verb: "add" | "remove", options: WordOptions, io: Io): Promise<void> {
  const { json } = options;
  const { incident: typed, words } = splitWords(options, `affected ${verb} NAME`);
  if (words.length === 0) throw new UsageError("missing argument: NAME");
  const { incident, after } = await IncidentClient.within(io, async (client) => {
    const incident = await client.resolve(typed);
    const before = await affectedBy(client, incident);
    const ids = { services: idsOf(before.services), applications: idsOf(before.applications) };
    for (const word of words) {
      const { kind, id } = verb === "add" ? await inCatalog(client, word) : among(before, word);
      if (verb === "add") ids[kind].add(id);
      else ids[kind].delete(id);
    }
    const body = { service_ids: [...ids.services], application_ids: [...ids.applications] };
    const after = await client.call<Affected>("PUT", `/incidents/${incident.id}/affected/`, body);
    return { incident, after };
  });
  done(io, incident, json, after);
}

/** For an older server, which does not record this. */
export const nothingAffected: Affected = { services: [], applications: [] };

export async function affectedBy(client: IncidentClient, { id }: { id: number }): Promise<Affected> {
  return client.call<Affected>("GET", `/incidents/${id}/affected/`);
}

/** `Affects Checkout, Shop`; undefined if nothing is recorded. */
export function affectedLine({ services, applications }: Affected): string | undefined {
  const names = [...services, ...applications].map(({ name }) => printable(name, 80));
  return names.length === 0 ? undefined : `Affects ${names.join(", ")}`;
}

function idsOf(items: readonly Named[]): Set<number> {
  return new Set(items.map(({ id }) => id));
}

/** `service:Checkout` names a service, `Checkout` a service or an application. */
function partsOf(word: string): { kinds: Kind[]; name: string } {
  const [, prefix, rest] = /^(service|application):(.*)$/is.exec(word) ?? [];
  if (prefix === undefined) return { kinds: ["services", "applications"], name: word.trim() };
  return { kinds: [prefix.toLowerCase() === "service" ? "services" : "applications"], name: rest!.trim() };
}

/** @throws NotFound with the nearest name */
async function inCatalog(client: IncidentClient, word: string) {
  const { kinds, name } = partsOf(word);
  if (name === "") throw new UsageError("the name of a service or application is empty");
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      // By its name first: the catalog may have more than a list shows.
      const exact = await client.list<Named>(`/${kind}/`, { name });
      return [kind, exact.length > 0 ? exact : await client.list<Named>(`/${kind}/`)] as const;
    }),
  );
  return pick(Object.fromEntries(lists), word);
}

function among(affected: Affected, word: string) {
  const { kinds } = partsOf(word);
  return pick(Object.fromEntries(kinds.map((kind) => [kind, affected[kind]])), word, "affected ");
}

function pick(lists: Partial<Affected>, word: string, which = ""): { kind: Kind; id: number } {
  const wanted = partsOf(word).name.toLowerCase();
  const all = (Object.entries(lists) as [Kind, Named[]][]).flatMap(([kind, items]) =>
    items.map(({ id, name }) => ({ kind, id, name })),
  );
  const found = all.filter(({ name }) => name.toLowerCase() === wanted);
  if (found.length === 1) return found[0]!;
  const shown = printable(word, 80);
  if (found.length > 1)
    throw new UsageError(`"${shown}" is the name of several: write service:${shown} or application:${shown}`);
  const near = nearestNamed(all, wanted);
  const hint = near ? `. Did you mean ${printable(near.name, 80)}?` : "";
  throw new NotFound(`there is no ${which}service or application "${shown}"${hint}`);
}
