import type { Static } from "elysia";
import { Conflict, InvalidInput } from "../../platform/errors.ts";
import type { linkView } from "../../server/link/model.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { printable } from "../text.ts";
import { IncidentClient, type IncidentDetail } from "./incident.ts";
import { done, eachInTurn, splitWords, type WordOptions } from "./write.ts";

/** Another incident, as one side of a link shows it. */
export type Link = Static<typeof linkView>;

/** `svc incident link` */
export async function linkCommand(options: WordOptions & { duplicate?: boolean }, io: Io): Promise<void> {
  const { duplicate, json } = options;
  const { incident: typed, words } = wordsOf(options);
  if (duplicate && words.length > 1) throw new UsageError("an incident is a duplicate of only one: name one");
  const { incident, items } = await IncidentClient.within(io, async (client) => {
    const { incident, others } = await incidentsOf(client, typed, words);
    const links = await linksOf(client, incident);
    const items = await eachInTurn(io, incident, "were linked", others, async ({ id, name }) => {
      const known = links.find((one) => one.incident.id === id);
      if (known?.kind === (duplicate ? "duplicate_of" : "related")) {
        io.stderr.write(`${incident.name} is already linked with ${name}\n`);
        return known;
      }
      const body = { incident: name, kind: duplicate ? "duplicate" : "related" };
      return client.post<Link>(`/incidents/${incident.id}/links/`, body);
    });
    return { incident, items };
  });
  done(io, incident, json, { items });
}

/** `svc incident unlink` */
export async function unlinkCommand(options: WordOptions, io: Io): Promise<void> {
  const { json } = options;
  const { incident: typed, words } = wordsOf(options);
  const { incident, items } = await IncidentClient.within(io, async (client) => {
    const { incident, others } = await incidentsOf(client, typed, words);
    const links = await linksOf(client, incident);
    const items = others.map((other) => {
      const link = links.find((one) => one.incident.id === other.id);
      if (link === undefined) throw new Conflict(`${incident.name} is not linked with ${other.name}`);
      return link;
    });
    await eachInTurn(io, incident, "were removed", items, ({ id }) =>
      client.call("DELETE", `/incidents/${incident.id}/links/${id}`),
    );
    return { incident, items };
  });
  done(io, incident, json, { items });
}

/** The links that the user may see. */
export async function linksOf(client: IncidentClient, { id }: { id: number }): Promise<Link[]> {
  return client.list<Link>(`/incidents/${id}/links/`);
}

const relations = {
  related: "Related to",
  duplicate_of: "Duplicate of",
  duplicated_by: "Duplicated by",
} as const;

/** A line for each link: `Duplicate of INC-44  Checkout is down (Closed)`. */
export function linkLines(links: readonly Link[]): string[] {
  return links.map(
    ({ kind, incident: { name, title, status } }) =>
      `${relations[kind]} ${name}  ${printable(title)} (${status})`,
  );
}

function wordsOf({ words = [], incident }: WordOptions) {
  // A single word is the other incident.
  const split = words.length > 1 ? splitWords({ words, incident }, "link OTHER") : { words, incident };
  if (split.words.length === 0) throw new UsageError("missing argument: OTHER");
  return split;
}

/** Returns the incident and the others. All are looked up before anything changes, so a typing error changes nothing. */
async function incidentsOf(client: IncidentClient, typed: string | undefined, words: readonly string[]) {
  const others = new Map<number, IncidentDetail>();
  for (const word of words) {
    const other = await client.resolve(word);
    others.set(other.id, other);
  }
  const incident = await client.resolve(typed);
  if (others.has(incident.id))
    throw new InvalidInput("incident", `${incident.name} cannot be linked with itself`);
  return { incident, others: [...others.values()] };
}
