import { SvcError, Unavailable } from "../../platform/errors.ts";
import { forgetCredentials } from "../access/cache.ts";
import { revokeToken } from "../client/api.ts";
import { type Credentials, type Entry, NO_CREDENTIALS, withoutToken } from "../client/credentials.ts";
import { updateCredentials } from "../client/credentials_file.ts";
import { fromKeychain } from "../client/private_file.ts";
import { parseServer, type Server } from "../client/server.ts";
import { isExpired, openServer, storedToken } from "../client/session.ts";
import type { Io } from "../io.ts";

export interface SignedOut {
  server: string;
  user: string;
  /** False if neither the token nor a certificate was valid, so that there was nothing to revoke. */
  revoked: boolean;
}

/**
 * Revokes the stored token and certificate at the server, and deletes them and everything issued by them; with `all`, for
 * every server.
 * @returns the servers signed out of
 * @throws Unavailable if a server could not be reached. Its token is still deleted here.
 */
export async function logout(options: { all?: boolean }, io: Io): Promise<SignedOut[]> {
  const { server, credentials } = openServer(io);
  const signedIn = Object.entries(credentials().servers)
    .filter(
      ([base, { storage, certificate }]) => (storage ?? certificate) && (options.all || base === server.base),
    )
    .map(([base, entry]) => ({ server: parseServer(base, (fault) => new Unavailable(fault)), entry }));
  const faults: string[] = [];
  const undeleted: SvcError[] = [];
  // What cannot be deleted here, on a full or read-only disk, must not keep the rest from being revoked.
  const noteUndeleted = (error: unknown) => {
    if (!(error instanceof SvcError)) throw error;
    undeleted.push(error);
    return { revoked: false, fault: undefined };
  };
  const done: SignedOut[] = [];
  for (const { server, entry } of signedIn) {
    const certificate = await endStoredCertificate(io, server, entry).catch(noteUndeleted);
    if (certificate.fault !== undefined) faults.push(certificate.fault);
    try {
      const token = await storedToken(io, server, entry);
      const isTokenRevoked =
        token !== undefined &&
        !(await isExpired(io, server, token)) &&
        (await revokeToken(io, server, token));
      const revoked = certificate.revoked || isTokenRevoked;
      if (certificate.fault === undefined) done.push({ server: server.base, user: entry.user, revoked });
    } catch (error) {
      if (!(error instanceof SvcError)) throw error;
      faults.push(`${error.detail}; deleted here, but the token is valid until ${entry.expires_at}`);
    }
    if (entry.storage === "keychain")
      await fromKeychain(() => io.keychain.delete(server.base)).catch(() => {});
    try {
      updateCredentials(io.env, (all) => withoutToken(all, server.base));
    } catch (error) {
      noteUndeleted(error);
    }
  }
  try {
    forgetCredentials(io.env, options.all ? undefined : server.base);
    if (options.all && Object.keys(credentials().servers).length > 0) updateCredentials(io.env, forgetUsers);
  } catch (error) {
    noteUndeleted(error);
  }
  const [first] = undeleted;
  if (first && faults.length === 0) throw first;
  if (first) faults.push(first.detail);
  if (faults.length > 0) throw new Unavailable(faults.join("\n"));
  return done;
}

async function endStoredCertificate(io: Io, server: Server, entry: Entry) {
  if (entry.certificate === undefined) return { revoked: false };
  const { endCertificate } = await import("../client/certificate.ts");
  return endCertificate(io, server, entry, await storedToken(io, server, entry).catch(() => undefined));
}

/** Keeps concurrent sign-ins. */
function forgetUsers(all: Credentials): Credentials {
  const servers = Object.fromEntries(
    Object.entries(all.servers).filter(([, { storage, certificate }]) => storage ?? certificate),
  );
  return Object.keys(servers).length === 0 ? NO_CREDENTIALS : { ...all, servers };
}
