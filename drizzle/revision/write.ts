import { existsSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { Conflict, InvalidInput, SvcError } from "../../platform/errors.ts";
import { sha256Hex } from "../../platform/secret.ts";
import { isAdditive } from "./additive.ts";
import type { Manifest } from "./history.ts";
import { readMarks } from "./marks.ts";

/** A schema as described by drizzle-kit: snapshot.json for a head, snapshot.json.gz for others. */
export type Snapshot = Record<string, unknown>;

interface NewRevision {
  id: string;
  message: string;
  parents: string[];
  up: string;
  down: string;
  snapshot: Snapshot;
  createdAt: Date;
  /** A person writes the SQL, so its effect on the previous release is unknown. */
  empty?: boolean;
}

/** `20261120T2350_sign_in`: sorts by time and describes the change. */
export function revisionId(message: string, at: Date): string {
  const time = at.toISOString().slice(0, 16).replaceAll(/[-:]/g, "");
  const words = message
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "_")
    .replaceAll(/^_+|_+$/g, "")
    .slice(0, 40)
    .replace(/_+$/, "");
  return words === "" ? time : `${time}_${words}`;
}

/** Names with another meaning wherever a revision is named. */
const reserved = ["head", "heads", "base", "current"];

/** @throws InvalidInput for an id that is not a valid folder name on every system */
export function checkRevisionId(id: string): string {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,79}$/.test(id) || reserved.includes(id)) {
    throw new InvalidInput(
      "rev-id",
      `"${id}" cannot name a revision: letters, digits, "_", "." and "-", at most 80, and not ${reserved.join(", ")}`,
    );
  }
  return id;
}

/**
 * Writes the folder of a revision atomically.
 * @throws Conflict when the id is taken
 */
export async function writeRevision(
  directory: string,
  revision: NewRevision,
): Promise<{ folder: string; manifest: Manifest }> {
  const { id, message, parents, snapshot } = revision;
  const folder = join(directory, id);
  if (existsSync(folder))
    throw new Conflict(`Revision ${id} already exists: choose another message or --rev-id`);
  const after = parents.length > 0 ? `after ${parents.join(", ")}` : "the first";
  const up = `-- ${oneLine(message)}\n-- Revision ${id}, ${after}\n\n${revision.up.trim()}\n`;
  const down = `-- Reverts: ${oneLine(message)}\n\n${revision.down.trim()}\n`;
  const manifest: Manifest = {
    message: oneLine(message),
    created_at: revision.createdAt.toISOString(),
    parents,
    compatible: !revision.empty && isAdditive(up),
    transactional: readMarks(up).transactional,
    irreversible: readMarks(down).irreversible !== undefined,
    checksums: { up: sha256Hex(up), down: sha256Hex(down) },
  };
  const unfinished = join(directory, `.unfinished-${id}-${process.pid}`);
  await rm(unfinished, { recursive: true, force: true });
  await mkdir(unfinished, { recursive: true });
  try {
    await Promise.all([
      writeFile(join(unfinished, "up.sql"), up),
      writeFile(join(unfinished, "down.sql"), down),
      writeFile(join(unfinished, "snapshot.json"), `${JSON.stringify(snapshot, null, 2)}\n`),
      writeFile(join(unfinished, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`),
    ]);
    await rename(unfinished, folder);
  } catch (cause) {
    await rm(unfinished, { recursive: true, force: true });
    throw new SvcError("configuration", `${folder} cannot be written: ${(cause as Error).message}`, {
      cause,
    });
  }
  for (const parent of parents) await compressSnapshot(directory, parent);
  return { folder, manifest };
}

const oneLine = (text: string) => text.replaceAll(/\s+/g, " ").trim();

/** @throws SvcError `configuration` when the revision has no snapshot */
export async function readSnapshot(directory: string, id: string): Promise<Snapshot> {
  const path = join(directory, id, "snapshot.json");
  try {
    const text = existsSync(path) ? await readFile(path) : gunzipSync(await readFile(`${path}.gz`));
    return JSON.parse(text.toString()) as Snapshot;
  } catch (cause) {
    throw new SvcError("configuration", `Revision ${id} has no snapshot.json, or it cannot be read`, {
      cause,
    });
  }
}

/**
 * Compresses the snapshot of a revision that is no longer a head. It is read again only to write another revision after
 * the same one; uncompressed, each revision would add thousands of lines.
 */
async function compressSnapshot(directory: string, id: string): Promise<void> {
  const path = join(directory, id, "snapshot.json");
  if (!existsSync(path)) return;
  await writeFile(`${path}.gz`, gzipSync(await readFile(path), { level: 9 }));
  await rm(path);
}
