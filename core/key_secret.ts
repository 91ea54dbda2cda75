import { isNotNull } from "drizzle-orm";
import { accessRole, signingKey } from "../drizzle/schema/index.ts";
import { ConfigurationError } from "../platform/errors.ts";
import { openSecrets } from "./access/role_plugin.ts";
import { openSigningKey } from "./auth/token/keys.ts";
import type { Context } from "./context.ts";

/**
 * Returns why SVC_KEY_SECRET is not the secret that this database has been used with: it decrypts none of the signing
 * keys and none of the access roles' secrets. A process without one only lacks it for the latter. The keys of
 * authorities do not count: after a secret was lost, they are replaced through a running server.
 */
export async function wrongKeySecret({
  db,
  config,
}: Pick<Context, "db" | "config">): Promise<ConfigurationError | undefined> {
  const { keySecret } = config;
  const roles = await db.select().from(accessRole).where(isNotNull(accessRole.secrets));
  const keys = keySecret ? await db.select().from(signingKey) : [];
  let wrong: ConfigurationError | undefined;
  for (const open of [
    ...keys.map((key) => () => openSigningKey(key, keySecret!)),
    ...roles.map((role) => () => openSecrets({ config }, role)),
  ]) {
    try {
      open();
      return undefined;
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error;
      wrong ??= error;
    }
  }
  return wrong;
}
