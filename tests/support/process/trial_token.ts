import { signToken } from "../../../core/auth/token/issue.ts";
import type { Database } from "../../../drizzle/client.ts";
import { token } from "../../../drizzle/schema/index.ts";
import { openServerParts } from "../../../server/open.ts";

/** Issues an access token like that of `svc login`, with the environment of a server. */
export async function issueTrialToken(
  environment: Record<string, string>,
  userName: string,
  groups: string[] = [],
): Promise<string> {
  const parts = await openServerParts({ environment });
  const issuedAt = new Date(Math.floor(Date.now() / 1000) * 1000);
  const expiresAt = new Date(issuedAt.getTime() + 3_600_000);
  const jti = crypto.randomUUID();
  await (parts.db as Database).insert(token).values({ jti, userName, groups, issuedAt, expiresAt });
  const claims = { jti, user: userName, groups, issuedAt, expiresAt };
  const signed = await signToken(parts.config, await parts.keys.signing(), claims);
  await parts.close();
  return signed;
}
