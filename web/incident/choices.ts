import { incidentPriorities } from "../../core/catalog/incident_priority.ts";
import { incidentTypes } from "../../core/catalog/incident_type.ts";
import { listRecords } from "../../core/catalog/list.ts";
import type { Actor } from "../../core/context.ts";
import type { Deps } from "../../server/deps.ts";
import type { Field } from "../parts/form.tsx";

/** Of a choice. The API has more. */
export const mostChoices = 100;

export interface Named {
  id: number;
  name: string;
}

const all = { limit: mostChoices, sort: "name", filters: {} };

/** The types and priorities of incidents, for a choice. */
export async function choicesOf(context: Deps, actor: Actor) {
  const [types, ranked] = await Promise.all([
    listRecords(context, actor, incidentTypes, all),
    rankedPriorities(context, actor),
  ]);
  const choices = (items: readonly Named[]) => items.map(({ id, name }) => [String(id), name] as const);
  return { types: choices(types.items), priorities: choices(ranked), ranked };
}

/** The priorities, the most urgent ones first. */
export async function rankedPriorities(context: Deps, actor: Actor) {
  const { items } = await listRecords(context, actor, incidentPriorities, all);
  return items.toSorted((a, b) => a.rank - b.rank);
}

/** A priority's number of bars: from one to three for the most urgent ones. */
export function barsOf(ranked: readonly { id: number; rank: number }[]): (priorityId: number) => number {
  const ranks = [...new Set(ranked.map(({ rank }) => rank))].sort((a, b) => a - b);
  return (priorityId) => {
    const at = ranks.indexOf(ranked.find(({ id }) => id === priorityId)?.rank ?? Number.NaN);
    return at < 0 ? 0 : ranks.length === 1 ? 2 : 1 + Math.round((2 * at) / (ranks.length - 1));
  };
}

/** The fields that a report and a change of an incident share. */
export async function incidentFields(
  context: Deps,
  actor: Actor,
  value: (name: string) => string | undefined,
): Promise<Field[]> {
  const { types, priorities } = await choicesOf(context, actor);
  const choice = (name: string, label: string, choices: Field["choices"]): Field => ({
    name,
    label,
    kind: "choice",
    isRequired: true,
    value: value(name),
    choices,
  });
  return [
    { name: "title", label: "Title", kind: "line", isRequired: true, value: value("title") },
    { name: "description", label: "Description", kind: "text", value: value("description") },
    choice("type", "Type", types),
    choice("priority", "Priority", priorities),
  ];
}
