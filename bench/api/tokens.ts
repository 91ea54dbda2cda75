import { signToken } from "../../core/auth/token/issue.ts";
import { Keys } from "../../core/auth/token/keys.ts";
import { readConfig } from "../../core/config.ts";
import { openDatabase } from "../../drizzle/client.ts";
import { token } from "../../drizzle/schema/index.ts";
import { systemClock } from "../../platform/clock.ts";
import { createLog } from "../../platform/log.ts";
import { email } from "./data.ts";

/** Access tokens of the first `count` people, none of them an admin, as svc would issue them today. */
export async function issueTokens(environment: Record<string, string>, count: number): Promise<string[]> {
  const config = readConfig(environment);
  const { db, close } = openDatabase(environment.SVC_DATABASE_URL!, 1);
  try {
    const keys = new Keys({ db, clock: systemClock, config, log: createLog(config.logLevel) });
    const key = await keys.signing();
    const issuedAt = new Date(Math.floor(Date.now() / 1000) * 1000);
    const expiresAt = new Date(issuedAt.getTime() + 86_400_000);
    const claims = Array.from({ length: count }, (_, at) => ({
      jti: crypto.randomUUID(),
      user: email(at + 1),
      groups: [],
      issuedAt,
      expiresAt,
    }));
    await db.insert(token).values(claims.map(({ user, ...rest }) => ({ ...rest, userName: user })));
    return await Promise.all(claims.map((one) => signToken(config, key, one)));
  } finally {
    await close();
  }
}
