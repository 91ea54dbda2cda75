import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { InvalidInput, SvcError } from "../../platform/errors.ts";
import { sha256Hex } from "../../platform/secret.ts";

/** Embedded into the single executable by scripts/build.ts, as it has no source tree to read. */
declare const SVC_REVISIONS: Revision[] | undefined;

/** The revisions built into the single executable; undefined when running from the source tree. */
const builtInRevisions = typeof SVC_REVISIONS === "undefined" ? undefined : SVC_REVISIONS;

/** The content of a revision's manifest.json, also stored in the database once the revision is applied. */
export interface Manifest {
  /** A short description. */
  message: string;
  /** ISO 8601. */
  created_at: string;
  /** The revisions it follows: none for the first, several for a merge. */
  parents: string[];
  /** Whether the previous release works with this schema, so that a rolling upgrade needs no downtime. */
  compatible: boolean;
  /** false: up.sql is one statement that cannot run in a transaction. Repeats the mark in the SQL. */
  transactional: boolean;
  /** true: the revision cannot be reverted. Repeats the mark in down.sql, which also gives the reason. */
  irreversible: boolean;
  /** SHA-256 of the SQL as generated, hex: shows whether a person has edited it since. */
  checksums: { up: string; down: string };
}

/** A schema change: a folder in drizzle/revisions (database.md). */
export interface Revision {
  /** The folder's name: sorts by time, unique. */
  id: string;
  parents: string[];
  up: string;
  down: string;
  /** SHA-256 of up.sql and down.sql, hex. An applied revision must not change. */
  checksum: string;
  manifest: Manifest;
}

/** drizzle/revisions of the source tree. */
export const revisionsDirectory = join(import.meta.dir, "../revisions");

/**
 * The revisions that this release knows, by id.
 * @throws SvcError `configuration` for a folder with a missing file or an invalid manifest
 */
export async function readRevisions(): Promise<Revision[]> {
  return builtInRevisions ?? readRevisionsFrom(revisionsDirectory);
}

export async function readRevisionsFrom(directory: string): Promise<Revision[]> {
  const entries = await readdir(directory, { withFileTypes: true });
  // Skips files that editors and systems leave behind (.DS_Store, .old).
  const folders = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith("."));
  const ids = folders.map(({ name }) => name).sort();
  return Promise.all(ids.map((id) => readRevision(directory, id)));
}

async function readRevision(directory: string, id: string): Promise<Revision> {
  const text = async (file: string) => {
    const content = await readFile(join(directory, id, file), "utf8").catch((cause: unknown) => {
      throw new SvcError("configuration", `Revision ${id} has no ${file}, or it cannot be read`, { cause });
    });
    // git may convert line endings, which does not change the meaning.
    return content.replaceAll("\r\n", "\n");
  };
  const [up, down, json] = await Promise.all([text("up.sql"), text("down.sql"), text("manifest.json")]);
  const manifest = parseManifest(id, json, up, down);
  return { id, parents: manifest.parents, up, down, checksum: checksumOf(up, down), manifest };
}

function parseManifest(id: string, json: string, up: string, down: string): Manifest {
  const fail = (what: string) => new SvcError("configuration", `manifest.json of revision ${id} ${what}`);
  let read: Partial<Manifest>;
  try {
    read = JSON.parse(json) as Partial<Manifest>;
  } catch {
    throw fail("is not JSON");
  }
  const { parents } = read ?? {};
  if (!Array.isArray(parents) || parents.some((parent) => typeof parent !== "string")) {
    throw fail("has no list of parents");
  }
  return {
    message: read.message ?? "",
    created_at: read.created_at ?? "",
    parents,
    compatible: read.compatible === true,
    transactional: read.transactional !== false,
    irreversible: read.irreversible === true,
    checksums: read.checksums ?? { up: sha256Hex(up), down: sha256Hex(down) },
  };
}

export function checksumOf(up: string, down: string): string {
  return new Bun.CryptoHasher("sha256").update(up).update("\0").update(down).digest("hex");
}

/** A revision's position in the graph. */
export interface Node {
  id: string;
  parents: readonly string[];
}

/** The revisions that no other revision follows, sorted by id. A release has one head. */
export function headsOf(revisions: readonly Node[]): string[] {
  const followed = new Set(revisions.flatMap((revision) => revision.parents));
  return revisions
    .map((revision) => revision.id)
    .filter((id) => !followed.has(id))
    .sort();
}

/**
 * All revisions, each after its parents; ties are sorted by id.
 * @throws SvcError `configuration` when a parent is missing or the graph has a cycle
 */
export function inOrder<T extends Node>(revisions: readonly T[]): T[] {
  const known = new Set(revisions.map(({ id }) => id));
  for (const { id, parents } of revisions) {
    const missing = parents.find((parent) => !known.has(parent));
    if (missing !== undefined)
      throw new SvcError("configuration", `Revision ${id} follows ${missing}, which does not exist`);
  }
  const waitsFor = new Map(revisions.map(({ id, parents }) => [id, parents.length]));
  const followers = followersOf(revisions);
  const order: T[] = [];
  const ready = revisions.filter(({ parents }) => parents.length === 0);
  const byId = (a: T, b: T) => (a.id < b.id ? -1 : 1);
  ready.sort(byId);
  while (ready.length > 0) {
    const next = ready.shift()!;
    order.push(next);
    let added = false;
    for (const follower of followers.get(next.id) ?? []) {
      const left = waitsFor.get(follower.id)! - 1;
      waitsFor.set(follower.id, left);
      if (left === 0) added = ready.push(follower) > 0;
    }
    if (added) ready.sort(byId);
  }
  if (order.length < revisions.length) {
    const done = new Set(order);
    const circle = revisions.filter((revision) => !done.has(revision)).map(({ id }) => id);
    throw new SvcError("configuration", `Revisions ${circle.join(", ")} form a cycle`);
  }
  return order;
}

/** The revisions that follow each one directly. */
function followersOf<T extends Node>(revisions: readonly T[]): Map<string, T[]> {
  const followers = new Map<string, T[]>();
  for (const revision of revisions) {
    for (const parent of revision.parents) {
      const list = followers.get(parent);
      if (list) list.push(revision);
      else followers.set(parent, [revision]);
    }
  }
  return followers;
}

/** The revisions without parents that are not among them, as after a stamp. */
export function withoutMissingParents<T extends Node>(revisions: readonly T[]): T[] {
  const there = new Set(revisions.map(({ id }) => id));
  return revisions.map((one) => ({ ...one, parents: one.parents.filter((id) => there.has(id)) }));
}

/** A revision's ancestors and itself. */
export function withAncestors(revisions: readonly Node[], id: string): Set<string> {
  const parents = new Map(revisions.map((revision) => [revision.id, revision.parents]));
  return reachableFrom(id, (at) => parents.get(at) ?? []);
}

/** A revision's descendants, without itself. */
export function descendantsOf(revisions: readonly Node[], id: string): Set<string> {
  const followers = followersOf(revisions);
  const found = reachableFrom(id, (at) => followers.get(at)?.map((follower) => follower.id) ?? []);
  found.delete(id);
  return found;
}

function reachableFrom(from: string, next: (id: string) => readonly string[]): Set<string> {
  const found = new Set([from]);
  // A Set iterates in insertion order and includes elements added during the iteration.
  for (const id of found) for (const other of next(id)) found.add(other);
  return found;
}

/**
 * Finds the revision that a person names: its id, a unique prefix of it, or `head`.
 * @throws InvalidInput `revision`
 */
export function findRevision<T extends Node>(revisions: readonly T[], name: string): T {
  const heads = headsOf(revisions);
  const isHeadName = name === "head" || name === "heads";
  const exact = revisions.filter(({ id }) => (isHeadName ? heads.includes(id) : id === name));
  const meant = exact.length > 0 || name === "" ? exact : revisions.filter(({ id }) => id.startsWith(name));
  if (meant.length === 1) return meant[0]!;
  const ids = meant.map(({ id }) => id).join(", ");
  throw new InvalidInput(
    "revision",
    meant.length === 0
      ? `There is no revision ${name}: svc database history lists them`
      : `${name} may be several revisions: ${ids}`,
  );
}
