import type { ArgSchema } from "gunshi/bone";
import { type Group, summaries } from "../command_tree.ts";
import { metavar } from "../help.ts";
import { root } from "../tree.ts";

export interface Candidate {
  word: string;
  about?: string;
}

export type Places = "files" | "folders";

/** By the placeholder of the value in the help. */
const known: Readonly<Record<string, () => Promise<Candidate[]>>> = {
  TASK: async () => {
    const { scheduledTasks } = await import("../../core/schedule/tasks.ts");
    return scheduledTasks.map(({ name }) => ({ word: name }));
  },
  REVISION: async () => {
    const { readRevisions } = await import("../../drizzle/revision/history.ts");
    const revisions = await readRevisions();
    return revisions.map(({ id, manifest }) => ({ word: id, about: manifest.message })).reverse();
  },
  SHELL: async () => (await import("./scripts.ts")).shells.map((word) => ({ word })),
  COMMAND: () => commandsIn(root),
};

const places: Readonly<Record<string, Places>> = { FILE: "files", DIRECTORY: "folders" };
/** By name, where the reference has the placeholder TEXT. */
const placesByName: Readonly<Record<string, Places>> = { uds: "files", reloadDir: "folders" };

/** The commands of a group, by all their names. */
export async function commandsIn(group: Group): Promise<Candidate[]> {
  return (await summaries(group)).flatMap(([names, about]) => names.map((word) => ({ word, about })));
}

/** The values of an argument that are known without a server or a database. */
export async function valuesOf(
  name: string,
  schema: ArgSchema,
): Promise<{ candidates: Candidate[]; places?: Places }> {
  if (schema.choices) return { candidates: schema.choices.map((word) => ({ word: String(word) })) };
  const kind = metavar(name, schema);
  const candidates = Object.hasOwn(known, kind) ? await known[kind]!() : [];
  return { candidates, places: placesByName[name] ?? places[kind] };
}
