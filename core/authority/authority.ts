import { createPrivateKey, generateKeyPairSync, type KeyObject, X509Certificate } from "node:crypto";
import { and, eq, getTableColumns, gt, inArray, isNull, or, type SQL, sql } from "drizzle-orm";
import type { Database, Transaction } from "../../drizzle/client.ts";
import { lockName } from "../../drizzle/lock_name.ts";
import { authorityKey, type authorityKinds, clientCertificate } from "../../drizzle/schema/index.ts";
import { after } from "../../platform/clock.ts";
import { ConfigurationError, Conflict, Forbidden, InvalidInput, NotFound } from "../../platform/errors.ts";
import { seal, unseal } from "../../platform/sealed.ts";
import { sshEd25519Blob, sshFingerprint } from "../../platform/ssh/public_key.ts";
import { audit } from "../audit.ts";
import type { Actor, Context } from "../context.ts";
import { databaseNow } from "../database_clock.ts";
import { endTokens } from "../end_tokens.ts";
import { type List, type ListQuery, startPage } from "../list/page.ts";

// Terminology: an authority has a kind and a name, and signs certificates that servers trust. Its keys are rotated with
// overlap. The next key is trusted as soon as it exists, so servers fetch it before it signs. The previous key stays
// trusted until its last certificate expires. A key that may have leaked is revoked instead, with everything it signed.
//
// The first key is created on first use. Times come from the database, like those of leases.

export type AuthorityKind = (typeof authorityKinds)[number];
export type AuthorityKeyRow = typeof authorityKey.$inferSelect;

/** A key without its private half. */
export type AuthorityKey = Omit<AuthorityKeyRow, "privateKey">;

/** The key that signs now. */
export interface SigningAuthority {
  id: number;
  public: string;
  privateKey: KeyObject;
}

export const authorityNamePattern = "^[a-z0-9]+(-[a-z0-9]+)*$";
export const longestAuthorityName = 60;
/** The X.509 authority whose certificates authenticate users of this service. Access roles may not use it. */
export const clientAuthority = "client";
/** Servers must fetch the trusted keys at least this often. */
const overlapSeconds = 24 * 3600;
/** The longest lease, with a margin. */
const longestCertificateSeconds = 7 * 24 * 3600 + 3600;

type KeyContext = Pick<Context, "db" | "config">;

const { privateKey: _, ...columns } = getTableColumns(authorityKey);

const of = (kind: AuthorityKind, name: string): SQL =>
  and(eq(authorityKey.kind, kind), eq(authorityKey.name, name))!;

/** Returns the current signing key of an authority. Creates the first one. @throws ConfigurationError */
export async function signingAuthority(
  context: KeyContext,
  kind: AuthorityKind,
  name: string,
): Promise<SigningAuthority> {
  const row = (await newestActive(context.db, kind, name)) ?? (await createFirst(context, kind, name));
  return { id: row.id, public: row.public, privateKey: openKey(context, row) };
}

async function newestActive(
  db: Database | Transaction,
  kind: AuthorityKind,
  name: string,
): Promise<AuthorityKeyRow | undefined> {
  const [row] = await db
    .select()
    .from(authorityKey)
    .where(and(of(kind, name), isNull(authorityKey.revokedAt), sql`active_at <= clock_timestamp()`))
    .orderBy(sql`active_at desc, id desc`)
    .limit(1);
  return row;
}

async function createFirst(context: KeyContext, kind: AuthorityKind, name: string): Promise<AuthorityKeyRow> {
  return context.db.transaction(async (tx) => {
    await lock(tx, kind, name);
    const made = await newestActive(tx, kind, name);
    if (made) return made;
    const at = await databaseNow(tx);
    const row = await insertKey(tx, context, { kind, name, at, activeAt: at });
    await audit(tx, { at, actor: "system", action: "authority.created", subject: `${kind}/${name}` });
    return row;
  });
}

/** Serializes changes to one authority across processes. */
const lock = (tx: Transaction, kind: AuthorityKind, name: string) =>
  lockName(tx, `svc authority ${kind} ${name}`);

/** The currently trusted keys, oldest first. Empty if the authority has never signed. */
export async function trustedKeys(
  { db }: Pick<Context, "db">,
  kind: AuthorityKind,
  name: string,
): Promise<AuthorityKey[]> {
  return db.select(columns).from(authorityKey).where(trusted(kind, name)).orderBy(authorityKey.id);
}

function trusted(kind: AuthorityKind, name: string): SQL {
  const good = or(isNull(authorityKey.expiresAt), gt(authorityKey.expiresAt, sql`clock_timestamp()`));
  return and(of(kind, name), isNull(authorityKey.revokedAt), good)!;
}

/** The currently trusted keys with their private halves: a retired key still signs its revocation list. */
export async function trustedAuthorities(
  context: KeyContext,
  kind: AuthorityKind,
  name: string,
): Promise<SigningAuthority[]> {
  const rows = await context.db
    .select()
    .from(authorityKey)
    .where(trusted(kind, name))
    .orderBy(authorityKey.id);
  return rows.map((row) => ({ id: row.id, public: row.public, privateKey: openKey(context, row) }));
}

/** All past and present keys of an authority, oldest first. */
export async function allKeys(
  { db }: Pick<Context, "db">,
  kind: AuthorityKind,
  name: string,
): Promise<AuthorityKey[]> {
  return db.select(columns).from(authorityKey).where(of(kind, name)).orderBy(authorityKey.id);
}

const keys: List<"created_at"> = {
  name: "authority_keys",
  id: authorityKey.id,
  sorts: { created_at: { by: authorityKey.createdAt, kind: "instant" } },
  defaultSort: "-created_at",
};

/** One page of the keys of all authorities, newest first. @throws Forbidden @throws InvalidInput */
export async function listAuthorityKeys(
  { db }: Pick<Context, "db">,
  actor: Actor,
  query: ListQuery,
): Promise<{ items: AuthorityKey[]; next_cursor: string | null }> {
  assertAdmin(actor);
  const page = startPage(keys, query, {});
  const rows = await db
    .select({ item: columns, key: page.key })
    .from(authorityKey)
    .where(page.within())
    .orderBy(...page.orderBy)
    .limit(page.limit);
  return page.finish(rows);
}

/** @throws Forbidden @throws NotFound */
export async function getAuthorityKey(
  { db }: Pick<Context, "db">,
  actor: Actor,
  id: number,
): Promise<AuthorityKey> {
  assertAdmin(actor);
  const [row] = await db.select(columns).from(authorityKey).where(eq(authorityKey.id, id));
  if (!row) throw new NotFound("There is no such authority key");
  return row;
}

/**
 * Creates the next key of an authority. It starts signing after a day, so that servers can fetch it first, and the previous
 * key stays trusted until its certificates expire. With `revoke`, the new key signs immediately, and all previous keys are
 * revoked with everything they have signed.
 *
 * @throws Forbidden
 * @throws InvalidInput
 * @throws Conflict if the next key already exists
 * @throws ConfigurationError
 */
export async function rotateAuthority(
  context: KeyContext,
  actor: Actor,
  { kind, name, revoke }: { kind: AuthorityKind; name: string; revoke: boolean },
): Promise<AuthorityKey> {
  assertAdmin(actor);
  if (name.length > longestAuthorityName || !new RegExp(authorityNamePattern).test(name))
    throw new InvalidInput("name", "The name must consist of lower-case letters, digits and hyphens");
  return context.db.transaction(async (tx) => {
    await lock(tx, kind, name);
    const at = await databaseNow(tx);
    const current = await newestActive(tx, kind, name);
    const next = await tx.$count(
      authorityKey,
      and(of(kind, name), isNull(authorityKey.revokedAt), gt(authorityKey.activeAt, at)),
    );
    if (next > 0 && !revoke)
      throw new Conflict("The next key of this authority already exists and starts signing within a day");
    const activeAt = revoke || !current ? at : after(at, overlapSeconds);
    if (revoke) {
      const revoked = await tx
        .update(authorityKey)
        .set({ revokedAt: at, expiresAt: at })
        .where(and(of(kind, name), isNull(authorityKey.revokedAt)))
        .returning({ id: authorityKey.id });
      // Only the authority of clients has certificates there. Streams and leases depend on the sign-in, not on the key.
      const { jti, authorityKeyId } = clientCertificate;
      const ids = revoked.map(({ id }) => id);
      if (ids.length > 0)
        await endTokens(
          tx,
          sql`select ${jti} from ${clientCertificate} where ${inArray(authorityKeyId, ids)}`,
          at,
        );
    } else
      await tx
        .update(authorityKey)
        .set({ expiresAt: after(activeAt, longestCertificateSeconds) })
        .where(and(of(kind, name), isNull(authorityKey.expiresAt)));
    const { privateKey: _, ...made } = await insertKey(tx, context, { kind, name, at, activeAt });
    const action = current || revoke ? "authority.rotated" : "authority.created";
    await audit(tx, { at, actor: actor.user, action, subject: `${kind}/${name}`, data: { revoke } });
    return made;
  });
}

function assertAdmin({ admin }: Actor): void {
  if (!admin) throw new Forbidden("Only admins can manage authorities");
}

async function insertKey(
  tx: Transaction,
  { config }: Pick<Context, "config">,
  { kind, name, at, activeAt }: { kind: AuthorityKind; name: string; at: Date; activeAt: Date },
): Promise<AuthorityKeyRow> {
  if (!config.keySecret)
    throw new ConfigurationError(["SVC_KEY_SECRET: required to store the keys of certificate authorities"]);
  const made = await makers[kind]({ name, at, domain: config.domain?.toLowerCase() });
  const pem = made.privateKey.export({ type: "pkcs8", format: "pem" }) as string;
  const privateKey = seal(pem, sealOf(config.keySecret, { kind, name, public: made.public }));
  const [row] = await tx
    .insert(authorityKey)
    .values({ kind, name, public: made.public, privateKey, createdAt: at, activeAt })
    .returning();
  return row!;
}

interface NewKey {
  name: string;
  at: Date;
  domain: string | undefined;
}

const makers: Record<AuthorityKind, (of: NewKey) => Promise<{ public: string; privateKey: KeyObject }>> = {
  ssh: async ({ name }) => {
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    return { public: `ssh-ed25519 ${sshEd25519Blob(publicKey).toString("base64")} svc-${name}`, privateKey };
  },
  x509: async ({ name, at, domain }) => {
    // Loaded on demand: the library is slow to load, and few processes need it.
    const { createX509Authority } = await import("../../platform/x509/certificate.ts");
    return createX509Authority(name, at, domain);
  },
};

/** The seal includes the public half, so the private key of one row cannot be decrypted in another. */
const sealOf = (secret: string, row: { kind: AuthorityKind; name: string; public: string }) => ({
  secret,
  purpose: "authority key",
  name: `${row.kind}/${row.name}/${row.public}`,
});

function openKey({ config }: Pick<Context, "config">, row: AuthorityKeyRow): KeyObject {
  const seal = sealOf(config.keySecret ?? "", row);
  return createPrivateKey(unseal(row.privateKey, seal, `the key of authority ${row.kind}/${row.name}`));
}

/** The wire encoding of a key of kind `ssh`. */
export const sshBlobOf = (row: { public: string }): Buffer =>
  Buffer.from(row.public.split(" ")[1]!, "base64");

/** The fingerprint that people compare, as ssh-keygen or openssl print it. */
export function fingerprintOf(row: Pick<AuthorityKey, "kind" | "public">): string {
  if (row.kind === "x509") return new X509Certificate(row.public).fingerprint256;
  return sshFingerprint(sshBlobOf(row));
}
