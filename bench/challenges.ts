import { openSql } from "../drizzle/client.ts";
import { newSecret, newUserCode, sha256 } from "../platform/secret.ts";

/** What the client of a pending challenge knows. */
export interface PendingChallenge {
  token: string;
  verifier: string;
}

const batch = 5000;

/** Inserts `count` pending challenges of bound clients, like those that the generator creates in a day. */
export async function insertChallenges(databaseUrl: string, count: number): Promise<PendingChallenge[]> {
  const all = Array.from({ length: count }, () => ({ token: newSecret(), verifier: newSecret() }));
  const sql = openSql(databaseUrl, { max: 1 });
  try {
    for (let at = 0; at < count; at += batch) {
      const some = all.slice(at, at + batch);
      await sql`
        insert into challenge
          (id, token_hash, user_name, user_code, code_challenge, request_address, client, created_at, expires_at)
        select id, decode(hash, 'hex'), 'alice@example.com', code, code_challenge, '127.0.0.1', 'bench',
          now(), now() + interval '1 day'
        from unnest(
          ${some.map(() => Bun.randomUUIDv7())}::uuid[],
          ${some.map(({ token }) => Buffer.from(sha256(token)).toString("hex"))}::text[],
          ${some.map(newUserCode)}::text[],
          ${some.map(({ verifier }) => Buffer.from(sha256(verifier)).toString("base64url"))}::text[]
        ) as given (id, hash, code, code_challenge)`;
    }
    // Otherwise PostgreSQL would do it in the middle of a measurement.
    await sql`vacuum analyze challenge`;
    await sql`checkpoint`;
    return all;
  } finally {
    await sql.end({ timeout: 5 });
  }
}
