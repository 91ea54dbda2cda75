import { ConfigurationError } from "../../platform/errors.ts";
import { type Environment, readVariable } from "../../platform/variable.ts";
import type { Io } from "../io.ts";
import { serviceEnvironment } from "../trial.ts";

/** In this order, because the second may be a pooler, which schema changes and dumps cannot use. */
const names = ["SVC_DATABASE_DIRECT_URL", "SVC_DATABASE_URL"];

/**
 * SVC_DATABASE_DIRECT_URL, else SVC_DATABASE_URL, from the environment, its `_FILE`, `.env`, or the trial in the working
 * directory (cli/trial.ts). Other variables are not read, so that a database can be repaired with an otherwise invalid
 * configuration. Of several hosts, it returns the address of the primary.
 *
 * @throws ConfigurationError if it is missing or invalid
 * @throws Unavailable if none of several hosts is the primary
 */
export async function databaseUrl(io: Pick<Io, "env" | "stderr">): Promise<string> {
  const { environment } = await serviceEnvironment(io);
  return databaseUrlIn(environment);
}

/** The same, or undefined if it is not set. */
export async function databaseUrlIfSet(io: Pick<Io, "env" | "stderr">): Promise<string | undefined> {
  const { environment } = await serviceEnvironment(io);
  return addressIn(environment);
}

/** The same, from an environment that was already read. */
export async function databaseUrlIn(environment: Environment): Promise<string> {
  const url = await addressIn(environment);
  if (url !== undefined) return url;
  const { databaseMissing } = await import("../../drizzle/connection/database_url.ts");
  throw new ConfigurationError([databaseMissing]);
}

async function addressIn(environment: Environment): Promise<string | undefined> {
  const { databaseUrlFault, hasSeveralHosts } = await import("../../drizzle/connection/database_url.ts");
  for (const name of names) {
    const { text, fault: unread } = readVariable(environment, name, true);
    if (unread) throw new ConfigurationError([unread]);
    if (text === undefined) continue;
    const fault = databaseUrlFault(text);
    if (fault) throw new ConfigurationError([`${name}: this value ${fault}`]);
    if (!hasSeveralHosts(text)) return text;
    const { singleAddress } = await import("../../drizzle/connection/database_address.ts");
    return singleAddress(text);
  }
  return undefined;
}
