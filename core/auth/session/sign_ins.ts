import { and, eq, getTableColumns, gt, inArray, isNull, ne, or, type SQL, sql } from "drizzle-orm";
import { bigint, boolean, pgTable, text, uuid } from "drizzle-orm/pg-core";
import type { Database, Transaction } from "../../../drizzle/client.ts";
import { challenge, issuerSession, session } from "../../../drizzle/schema/index.ts";
import { instant } from "../../../drizzle/schema/types.ts";
import { Forbidden, InvalidInput, NotFound } from "../../../platform/errors.ts";
import { audit } from "../../audit.ts";
import type { Actor, Context } from "../../context.ts";
import { endTokens, isOfOrganisation } from "../../end_tokens.ts";
import { type List, type ListQuery, startPage } from "../../list/page.ts";
import { latestGroups } from "../certificate/certificate.ts";
import { endIssuerSessions, signOutEverywhere } from "./issuer_session.ts";
import { anonymous, lockSignIns } from "./session.ts";

// Terminology. A sign-in is what authenticates its user now: a browser session, the access token of a terminal, or a
// certificate sign-in, of our own authority or of an organisation's. A token that is bound to a certificate of ours ends with
// it, and is no sign-in of its own. Several sign-ins may come from one at the issuer (`issuer_session`).

export const signInKinds = ["browser", "terminal", "certificate", "organisation certificate"] as const;

/** A query, as a table: see `signInsNow`. */
const signIns = pgTable("sign_ins_now", {
  id: uuid("id").notNull(),
  /** Breaks ties in the list. */
  place: bigint("place", { mode: "number" }).notNull(),
  kind: text("kind", { enum: signInKinds }).notNull(),
  user: text("user_name").notNull(),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
  isAdmin: boolean("is_admin").notNull(),
  /** Of the newest certificate of ours. */
  serial: text("serial"),
  isCurrent: boolean("is_current").notNull(),
  /** The certificate sign-in of the same user whose certificate it is bound to: see the terminology. */
  boundTo: uuid("bound_to"),
  issuerSessionId: uuid("issuer_session_id"),
});

/** `isCurrent`: the actor uses it. `createdAt`: when a certificate of an organisation began to be valid. */
export type SignIn = Omit<typeof signIns.$inferSelect, "place" | "boundTo" | "issuerSessionId">;

const keyDigest = sql`substr(sha256('svc sign-in '::bytea || ${session.idHash}), 1, 16)`;
/** Sets the four or two bits of a UUID that say of which kind it is. */
const withBits = (bytes: SQL, at: number, kept: number, bits: number) =>
  sql`set_byte(${bytes}, ${sql.raw(`${at}`)}, get_byte(${bytes}, ${sql.raw(`${at}`)}) & ${sql.raw(`${kept} | ${bits}`)})`;
/**
 * Half a SHA-256 of the key, which itself is the SHA-256 of the cookie: neither can be computed from it. It is a UUID of version
 * 8 (RFC 9562), because readers of the API may refuse others.
 */
const sessionId = sql`encode(${withBits(withBits(keyDigest, 6, 15, 128), 8, 63, 128)}, 'hex')::uuid`;

/** The certificate sign-in of a user that has this certificate. */
const signInWith = (certificate: SQL, user: SQL) => sql`(
  select holder.jti from client_certificate join token holder on holder.jti = client_certificate.jti
  where sha256 = ${certificate} and holder.user_name = ${user})`;

/** The valid sign-ins of a user, or of all, for the `with` of a query of `signIns`. */
function signInsNow(
  db: Database | Transaction,
  { clock, config }: Pick<Context, "clock" | "config">,
  { sessionKey, tokenId }: Pick<Actor, "sessionKey" | "tokenId">,
  user: string | undefined,
) {
  const now = sql`${clock.now().toISOString()}::timestamptz`;
  const ofUser = (column: SQL) => (user === undefined ? sql`true` : sql`${column} = ${user}`);
  const isAdmin = (groups: SQL) => sql`${config.adminGroup} = any (${groups})`;
  return db.$with("sign_ins_now", getTableColumns(signIns)).as(sql`
    select id, ('x' || right(id::text, 12))::bit(48)::bigint + 1 as place,
      kind, user_name, created_at, expires_at, is_admin, serial, is_current, bound_to, issuer_session_id
    from (
      select ${sessionId} as id, 'browser' as kind, user_name, coalesce(signed_in_at, created_at) as created_at, expires_at,
        ${isAdmin(sql`groups`)} as is_admin, null as serial,
        id_hash is not distinct from decode(${sessionKey ?? null}::text, 'hex') as is_current, null::uuid as bound_to, issuer_session_id
      from session where user_name is not null and expires_at > ${now} and ${ofUser(sql`user_name`)}
      union all
      select token.jti, case when newest.serial is not null then 'certificate'
          when ${isOfOrganisation(sql`token.jti`)} then 'organisation certificate' else 'terminal' end,
        token.user_name, token.issued_at, token.expires_at,
        ${isAdmin(sql`case when newest.serial is null then token.groups else ${latestGroups} end`)}, newest.serial,
        coalesce(token.jti in (${tokenId ?? null}::uuid, (
          select ${signInWith(sql`used.certificate_sha256`, sql`used.user_name`)} from token used where used.jti = ${tokenId ?? null}::uuid
        )), false),
        ${signInWith(sql`token.certificate_sha256`, sql`token.user_name`)}, token.issuer_session_id
      from token left join lateral (
        select serial, expires_at from client_certificate where jti = token.jti order by expires_at desc limit 1
      ) as newest on true
      where token.revoked_at is null and token.expires_at > ${now} and ${ofUser(sql`token.user_name`)}
        and (newest.expires_at is null or newest.expires_at > ${now})
    ) as valid`);
}

const isListed = isNull(signIns.boundTo);

const missing = "There is no such sign-in, or it has ended";

const list: List<"created_at"> = {
  name: "sign-ins",
  id: signIns.place,
  sorts: { created_at: { by: signIns.createdAt, kind: "instant" } },
  defaultSort: "-created_at",
};

/** One page of what the actor is signed in with now, newest first; an admin's list has everybody's. @throws InvalidInput */
export async function listSignIns(
  context: Context,
  actor: Actor,
  { user, ...query }: ListQuery & { user?: string },
): Promise<{ items: SignIn[]; next_cursor: string | null }> {
  const { db } = context;
  const page = startPage(list, query, { user });
  const rows = await db
    .with(signInsNow(db, context, actor, actor.admin ? user : actor.user))
    .select({ item: getTableColumns(signIns), key: page.key })
    .from(signIns)
    .where(page.within(and(isListed, user === undefined ? undefined : eq(signIns.user, user))))
    .orderBy(...page.orderBy)
    .limit(page.limit);
  const placed = rows.map(({ item: { place, ...item }, key }) => ({ item: { item, id: place }, key }));
  const { items, next_cursor } = page.finish(placed);
  return { items: items.map(({ item: { boundTo: _, issuerSessionId: __, ...item } }) => item), next_cursor };
}

/**
 * Ends a sign-in: its streams and leases end with it. The sign-in at the issuer ends when nothing else comes from it, and
 * so does what a browser has approved and no terminal has collected yet. A certificate of an organisation is refused from then on.
 *
 * @throws NotFound also for somebody else's, unless the actor is an admin
 */
export async function endSignIn(context: Context, actor: Actor, id: string, address: string): Promise<void> {
  const { db, clock } = context;
  const at = clock.now();
  if (!/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(id)) throw new NotFound(missing);
  await db.transaction(async (tx) => {
    const valid = (of: string | undefined) =>
      tx
        .with(signInsNow(tx, context, actor, of))
        .select()
        .from(signIns);
    const find = async (of: string | undefined) => {
      const [found] = await valid(of).where(and(eq(signIns.id, id), isListed));
      if (!found) throw new NotFound(missing);
      return found;
    };
    const { user } = await find(actor.admin ? undefined : actor.user);
    await lockSignIns(tx, user);
    // Again: somebody else may have ended it meanwhile.
    const { kind, issuerSessionId } = await find(user);
    const isLast = async (atIssuer: SQL) => {
      // Until a certificate that is being issued is stored: it stays then.
      await tx.select({ id: issuerSession.id }).from(issuerSession).where(atIssuer).for("no key update");
      // What is bound to this one ends with it.
      const stays = and(ne(signIns.id, id), or(isListed, ne(signIns.boundTo, id)));
      const others = and(eq(signIns.issuerSessionId, issuerSessionId!), stays);
      return (await valid(user).where(others).limit(1)).length === 0;
    };
    const atIssuer = issuerSessionId === null ? undefined : eq(issuerSession.id, issuerSessionId);
    const endsAtIssuer = atIssuer && (await isLast(atIssuer));
    // What it has approved may have come from an earlier one at the issuer.
    if (kind === "browser") await endBrowser(tx, user, id, at);
    else await endTokens(tx, sql`select ${id}::uuid`, at);
    if (endsAtIssuer) await endIssuerSessions(tx, atIssuer, { at, because: "revoked", address });
    const data = { user, kind };
    await audit(tx, { at, actor: actor.user, action: "sign_in.ended", address, subject: id, data });
  });
}

/** Ends a browser session, with what it has approved and no terminal has collected yet, or may be about to approve. */
async function endBrowser(tx: Transaction, user: string, id: string, at: Date): Promise<void> {
  const ended = and(eq(session.userName, user), eq(sessionId, id));
  const ofSession = inArray(
    challenge.sessionHash,
    tx.select({ idHash: session.idHash }).from(session).where(ended),
  );
  const isOpen = and(isNull(challenge.deniedAt), isNull(challenge.collectedAt));
  await tx
    .update(challenge)
    .set({ expiresAt: at })
    .where(and(ofSession, isOpen, gt(challenge.expiresAt, at)));
  await tx.update(session).set(anonymous(at)).where(ended);
}

/**
 * Ends all sign-ins of a user, except certificates of an organisation: nothing would bring these back.
 *
 * @returns how many
 * @throws InvalidInput without a user
 * @throws Forbidden for another user, except for admins
 */
export async function endSignIns(
  context: Context,
  actor: Actor,
  user: string | undefined,
  address: string,
): Promise<number> {
  if (user === undefined) throw new InvalidInput("query", "Specify a user");
  if (user !== actor.user && !actor.admin) throw new Forbidden("Only admins can end other users' sign-ins");
  return context.db.transaction(async (tx) => {
    const [ended] = await tx
      .with(signInsNow(tx, context, actor, user))
      .select({ count: sql<number>`count(*)::int` })
      .from(signIns)
      .where(and(ne(signIns.kind, "organisation certificate"), isListed));
    await signOutEverywhere({ ...context, db: tx }, { user, by: actor.user, address });
    return ended!.count;
  });
}
