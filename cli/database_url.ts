import type { Environment } from "../platform/variable.ts";
import type { Io } from "./io.ts";

/** The second may be a pooler's, which is nothing for schema changes and dumps. */
const names = ["SVC_DATABASE_DIRECT_URL", "SVC_DATABASE_URL"];

/**
 * SVC_DATABASE_DIRECT_URL, else SVC_DATABASE_URL, from the environment, a file that it names, `.env`, or the trial that
 * runs in the working directory (cli/trial.ts). The other variables are not looked at: a database can be mended while the
 * rest of the configuration cannot be read. Of several hosts it is the address of the one that takes writes.
 *
 * @throws ConfigurationError without it, or when it is none
 * @throws Unavailable when none of several hosts takes writes
 */
export async function databaseUrl(io: Pick<Io, "env" | "stderr">): Promise<string> {
  const { serviceEnvironment } = await import("./trial.ts");
  return await databaseUrlIn((await serviceEnvironment(io)).environment);
}

/** The same; undefined where it is not set. */
export async function databaseUrlIfSet(io: Pick<Io, "env" | "stderr">): Promise<string | undefined> {
  const { serviceEnvironment } = await import("./trial.ts");
  return await addressIn((await serviceEnvironment(io)).environment);
}

/** The same, of an environment that has been read. */
export async function databaseUrlIn(environment: Environment): Promise<string> {
  const url = await addressIn(environment);
  if (url !== undefined) return url;
  const [{ databaseMissing }, { ConfigurationError }] = await Promise.all([
    import("../drizzle/connection/database_url.ts"),
    import("../platform/errors.ts"),
  ]);
  throw new ConfigurationError([databaseMissing]);
}

async function addressIn(environment: Environment): Promise<string | undefined> {
  const [{ readVariable }, { databaseUrlFault }, { ConfigurationError }] = await Promise.all([
    import("../platform/variable.ts"),
    import("../drizzle/connection/database_url.ts"),
    import("../platform/errors.ts"),
  ]);
  for (const name of names) {
    const { text, fault: unread } = readVariable(environment, name, true);
    if (unread) throw new ConfigurationError([unread]);
    if (text === undefined) continue;
    const fault = databaseUrlFault(text);
    if (fault) throw new ConfigurationError([`${name}: this value ${fault}`]);
    return await oneServer(text);
  }
  return undefined;
}

async function oneServer(address: string): Promise<string> {
  const { hasSeveralHosts } = await import("../drizzle/connection/database_url.ts");
  if (!hasSeveralHosts(address)) return address;
  const { singleAddress } = await import("../drizzle/connection/database_address.ts");
  return await singleAddress(address);
}
