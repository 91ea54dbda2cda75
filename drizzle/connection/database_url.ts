import { accessSync, constants } from "node:fs";
import { whyUnreadable } from "../../platform/unreadable.ts";
import { databaseUrlPattern } from "../../platform/variable.ts";
import { addressesOf } from "./hosts.ts";

/** For a ConfigurationError. */
export const databaseMissing =
  "SVC_DATABASE_URL is not set: give it as postgres://user:password@host:5432/name, or start a trial that has its own: npm start";

/** Parameters of libpq of which not every value can be had here. What another value asks for must not be passed over. */
const possible: Record<string, readonly string[]> = {
  sslmode: ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"],
  channel_binding: ["disable", "prefer"],
  gssencmode: ["disable", "prefer"],
  target_session_attrs: ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"],
};

/** Of several servers svc always wants the one that takes writes; these ask for another. */
const notForWriting = ["read-only", "standby", "prefer-standby"];

/** Whether an address names several hosts, of which singleAddress (database_address.ts) finds the one to use. */
export function hasSeveralHosts(address: string): boolean {
  return addressesOf(address).length > 1;
}

/** What is wrong with PostgreSQL's address, as the rest of a sentence that holds nothing of it: the password is in it. */
export function databaseUrlFault(text: string): string | undefined {
  if (!new RegExp(databaseUrlPattern).test(text))
    return "is not an address such as postgres://user:password@host:5432/name";
  const addresses = addressesOf(text);
  if (addresses.length === 1) return faultOfOne(text);
  const [, wanted] = /[?&]target_session_attrs=([^&]*)/.exec(text) ?? [];
  if (wanted !== undefined && notForWriting.includes(wanted))
    return `asks for target_session_attrs=${wanted}: svc writes, so it has to be read-write`;
  if (wanted !== undefined && !possible.target_session_attrs!.includes(wanted))
    return faultOfOne(`postgres://host?target_session_attrs=${wanted}`);
  for (const address of addresses) {
    if (/\/\/([^/?#]*@)?(:|\/|\?|$)/.test(address)) return "names a host that is empty";
    const fault = faultOfOne(address);
    if (fault) return fault;
  }
  return undefined;
}

function faultOfOne(text: string): string | undefined {
  let url: URL;
  try {
    url = new URL(text);
    for (const part of [url.username, url.password, url.pathname]) decodeURIComponent(part);
  } catch {
    return "cannot be read: write special characters of user and password as %40 for @, %25 for %";
  }
  const { searchParams } = url;
  for (const [name, values] of Object.entries(possible)) {
    const value = searchParams.get(name);
    if (value === null || values.includes(value)) continue;
    return `asks for a ${name} that svc does not have: it may be ${values.join(", ")}`;
  }
  for (const name of ["sslrootcert", "sslcert", "sslkey"]) {
    const file = searchParams.get(name);
    const reason = file !== null && file !== "system" && unreadable(file);
    if (reason) return `names a file by ${name} that cannot be read: ${reason}`;
  }
  if (/search_path/.test(searchParams.get("options") ?? "")) {
    return "sets search_path: svc keeps its tables in the schema public, so leave that out of it";
  }
  return undefined;
}

function unreadable(path: string): string | undefined {
  try {
    accessSync(path, constants.R_OK);
    return undefined;
  } catch (error) {
    return whyUnreadable(error);
  }
}
