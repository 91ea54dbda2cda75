import type { ArgSchema } from "gunshi/bone";
import { metavar } from "../help.ts";
import { isGroup, root } from "../tree.ts";

export interface Candidate {
  word: string;
  about?: string;
}

export type Places = "files" | "folders";

/** By the word that stands for the value in the help; what has none of these is the person's own to say. */
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
  COMMAND: async () =>
    Object.entries(root.commands).map(([word, node]) => ({
      word,
      about: isGroup(node) ? `${node.about} ...` : node.about,
    })),
};

const places: Readonly<Record<string, Places>> = { FILE: "files", DIRECTORY: "folders" };
/** Those that the reference calls TEXT. */
const placesByName: Readonly<Record<string, Places>> = { uds: "files", reloadDir: "folders" };

/** What an argument may be, as far as it can be known without a server or a database. */
export async function valuesOf(
  name: string,
  schema: ArgSchema,
): Promise<{ candidates: Candidate[]; places?: Places }> {
  if (schema.choices) return { candidates: schema.choices.map((word) => ({ word: String(word) })) };
  const kind = metavar(name, schema);
  const candidates = Object.hasOwn(known, kind) ? await known[kind]!() : [];
  return { candidates, places: placesByName[name] ?? places[kind] };
}
