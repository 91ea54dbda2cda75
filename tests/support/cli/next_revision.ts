import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { checksumOf, inOrder, type Revision, readRevisions } from "../../../drizzle/revision/history.ts";
import { sha256Hex } from "../../../platform/secret.ts";
import { type Finished, spawnSvc } from "./process.ts";

// `svc` as a later release with two more revisions, for tests that need several.

const ours = inOrder(await readRevisions());
const next = later("29991231T2358_next", ours.at(-1)!.id, "email");
const last = later("29991231T2359_last", next.id, "name");

/** A revision that adds an index to a column of `team`. */
function later(id: string, parent: string, column: string): Revision {
  const [up, down] = [
    `create index team_${column} on team (${column});\n`,
    `drop index team_${column};\n`,
  ] as const;
  return {
    id,
    parents: [parent],
    up,
    down,
    checksum: checksumOf(up, down),
    manifest: {
      message: "next",
      created_at: "2999-12-31T23:59:00.000Z",
      parents: [parent],
      compatible: true,
      transactional: true,
      irreversible: false,
      checksums: { up: sha256Hex(up), down: sha256Hex(down) },
    },
  };
}

const file = join(mkdtempSync(join(tmpdir(), "svc-revisions-")), "revisions.json");
writeFileSync(file, JSON.stringify([...ours, next, last]));

/** The ids of that release's revisions, with the head last. */
export const ids = [...ours, next, last].map(({ id }) => id);
export const head = last.id;

export async function svc(args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  const preload = join(import.meta.dir, "next_revision_preload.ts");
  return await spawnSvc(args, { ...env, TEST_REVISIONS: file }, preload).finished;
}

/** Runs `svc database ...` on one database. */
export function on(url: string): (...args: string[]) => Promise<Finished> {
  return (...args) => svc(["database", ...args], { SVC_DATABASE_URL: url });
}
