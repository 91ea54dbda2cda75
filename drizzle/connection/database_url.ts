import { accessSync, constants } from "node:fs";
import { whyUnreadable } from "../../platform/unreadable.ts";
import { databaseUrlPattern } from "../../platform/variable.ts";
import { addressesOf } from "./hosts.ts";

/** Message of a ConfigurationError. */
export const databaseMissing =
  "SVC_DATABASE_URL is not set: set it to postgres://user:password@host:5432/name, or start a trial with an embedded database: npm start";

/** libpq parameters that only support some values here. Other values must be rejected, not ignored. */
const possible: Record<string, readonly string[]> = {
  sslmode: ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"],
  channel_binding: ["disable", "prefer"],
  gssencmode: ["disable", "prefer"],
  target_session_attrs: ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"],
};

/** svc always needs the server that accepts writes; these values select another one. */
const notForWriting = ["read-only", "standby", "prefer-standby"];

/** Whether an address has several hosts, from which singleAddress (database_address.ts) picks one. */
export function hasSeveralHosts(address: string): boolean {
  return addressesOf(address).length > 1;
}

/**
 * Describes what is wrong with PostgreSQL's address, as the rest of a sentence. Quotes nothing from it, as it contains
 * the password.
 */
export function databaseUrlFault(text: string): string | undefined {
  if (!new RegExp(databaseUrlPattern).test(text))
    return "is not an address such as postgres://user:password@host:5432/name";
  const addresses = addressesOf(text);
  if (addresses.length === 1) return faultOfOne(text);
  const [, wanted] = /[?&]target_session_attrs=([^&]*)/.exec(text) ?? [];
  if (wanted !== undefined && notForWriting.includes(wanted))
    return `asks for target_session_attrs=${wanted}: svc writes, so it has to be read-write`;
  if (wanted !== undefined && !possible.target_session_attrs!.includes(wanted))
    return unsupported("target_session_attrs");
  for (const address of addresses) {
    if (/\/\/([^/?#]*@)?(:|\/|\?|$)/.test(address)) return "contains an empty host";
    const fault = faultOfOne(address);
    if (fault) return fault;
  }
  return undefined;
}

const escapes =
  "write special characters of user and password as %40 for @, %2F for /, %23 for #, %3F for ?, %25 for %";

function faultOfOne(text: string): string | undefined {
  let url: URL;
  try {
    url = new URL(text);
    for (const part of [url.username, url.password, url.pathname]) decodeURIComponent(part);
  } catch {
    return `cannot be read: check host and port (an IPv6 address goes in brackets), and ${escapes}`;
  }
  const { searchParams } = url;
  // Otherwise a part of the password would be the name of the host, or of the database.
  const isCut = /@/.test(url.pathname + url.hash) || (url.username === "" && url.search.includes("@"));
  if (isCut || url.hash !== "")
    return `has a special character in the user, the password or the name: ${escapes}`;
  for (const [name, values] of Object.entries(possible)) {
    const value = searchParams.get(name);
    if (value !== null && !values.includes(value)) return unsupported(name);
  }
  for (const name of ["sslrootcert", "sslcert", "sslkey"]) {
    const file = searchParams.get(name);
    const reason = file !== null && file !== "system" && unreadable(file);
    if (reason) return `names a file in ${name} that cannot be read: ${reason}`;
  }
  if (searchParams.has("search_path") || /search_path/.test(searchParams.get("options") ?? "")) {
    return "sets search_path: remove it, because svc keeps its tables in the schema public";
  }
  return undefined;
}

function unsupported(name: string): string {
  return `asks for a ${name} that svc does not support: use one of ${possible[name]!.join(", ")}`;
}

function unreadable(path: string): string | undefined {
  try {
    accessSync(path, constants.R_OK);
    return undefined;
  } catch (error) {
    return whyUnreadable(error);
  }
}
