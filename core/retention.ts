import { type SQL, sql } from "drizzle-orm";
import {
  auditLog,
  challenge,
  issuerSession,
  session,
  signIn,
  signingKey,
  token,
} from "../drizzle/schema/index.ts";
import { after } from "../platform/clock.ts";
import type { Context } from "./context.ts";

const daySeconds = 24 * 3600;
/** A late poll still learns the outcome of its challenge. */
const latePollSeconds = 300;
/** How many rows are deleted at once, so that others do not wait long for them. */
const batch = 1000;

/**
 * Deletes what is no longer needed. docs/database.md has the table. What strangers can add without signing in
 * (undecided challenges, anonymous browser sessions, sign-in attempts) is deleted within minutes.
 */
export async function deleteExpired(context: Context): Promise<void> {
  const now = context.clock.now();
  const dayAgo = after(now, -daySeconds).toISOString();
  const lately = after(now, -latePollSeconds).toISOString();
  const { auditRetention } = context.config;
  const undecided = sql`approved_at is null and denied_at is null`;
  await deleteRows(context, signIn, sql`expires_at < ${now.toISOString()}`);
  await deleteRows(
    context,
    challenge,
    sql`expires_at < ${lately} and (expires_at < ${dayAgo} or ${undecided})`,
  );
  await deleteRows(
    context,
    session,
    sql`expires_at < ${now.toISOString()} and (expires_at < ${dayAgo} or user_name is null)`,
  );
  await deleteRows(context, token, sql`expires_at < ${dayAgo}`);
  const unused = ["session", "challenge", "token"].map(
    (table) => `not exists (select from ${table} of where of.issuer_session_id = issuer_session.id)`,
  );
  await deleteRows(context, issuerSession, sql.raw(unused.join(" and ")));
  await deleteRows(context, signingKey, sql`expires_at < ${dayAgo}`);
  // By the earlier of two clocks: a clock that jumps ahead must not delete the log.
  const today = sql`least(${now.toISOString()}, clock_timestamp())`;
  await deleteRows(context, auditLog, sql`at < ${today} - make_interval(days => ${auditRetention}::int)`);
}

type Table =
  | typeof signIn
  | typeof challenge
  | typeof session
  | typeof token
  | typeof issuerSession
  | typeof signingKey
  | typeof auditLog;

/** In batches, without waiting for rows that others have locked. */
async function deleteRows({ db }: Context, table: Table, old: SQL): Promise<void> {
  let deleted: readonly unknown[];
  do {
    deleted = await db.execute(sql`
      delete from ${table} where ctid = any (array(
        select ctid from ${table} where ${old} limit ${batch} for update skip locked
      )) returning true`);
  } while (deleted.length === batch);
}
