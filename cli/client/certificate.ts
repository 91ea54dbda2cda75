import { createPrivateKey, createPublicKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import * as fs from "node:fs";
import { dirname } from "node:path";
import { SvcError, Unauthenticated, Unavailable } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import type { Io } from "../io.ts";
import { revoke } from "./api.ts";
import {
  certificateFiles,
  firstCertificate,
  isOfKey,
  journalOf,
  type KeyPair,
  keyName,
  readCertificate,
  readFile,
  readPair,
  rewrite,
} from "./certificate_files.ts";
import { type Entry, isHttps, type StoredCertificate, withCertificate } from "./credentials.ts";
import { updateCredentials } from "./credentials_file.ts";
import { fromKeychain, makePrivateDirectory, storing, writePrivately } from "./private_file.ts";
import { problem, request } from "./request.ts";
import { parseServer, type Server } from "./server.ts";
import { askServerClock, machineClock } from "./server_clock.ts";
import { authorization, type Session } from "./token.ts";

// The client certificate of a server. Its key is generated here and never leaves this machine; the certificate is renewed
// by whichever command comes after two thirds of its lifetime. Other clients (curl, Weep) read the same two files.

const publicKeyAlgorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
/** How long other processes leave the renewal to the one that began it. */
const renewalSeconds = 30;
/** A renewal delays the user's command, so it fails soon, and is tried again after a while. */
const renewalRequestSeconds = 2;
const retrySeconds = 300;
/** Failed renewals are reported when less than this share of a certificate's lifetime is left. */
const shareForWarning = 1 / 6;
const requestSeconds = 10;

type Opened = Pick<Session, "endpoint" | "expiresAt" | "user" | "source"> & { token: undefined };

/**
 * The stored certificate of a server, renewed if that is due.
 *
 * @throws Unauthenticated if there is none, or it has expired
 * @throws ConfigurationError if a file is missing or damaged
 */
export async function openCertificate(io: Io, server: Server, entry: Entry | undefined): Promise<Opened> {
  const stored = entry?.certificate;
  if (stored === undefined)
    throw new Unauthenticated(`no client certificate of ${server.base}; run svc login --certificate`);
  let pair = await readPair(io, server, stored);
  if (isDue(pair, stored, io.clock.now()) || !isCurrent(pair, io.clock.now()))
    await askServerClock(io, server);
  if (isDue(pair, stored, io.clock.now())) pair = await renew(io, server, stored, pair);
  const expiresAt = endOf(pair);
  if (expiresAt <= io.clock.now())
    throw new Unauthenticated(
      `the client certificate of ${server.base} expired at ${expiresAt.toISOString()}, and the clock of this machine says ${machineClock(io).now().toISOString()}; run svc login --certificate`,
    );
  const endpoint = endpointOf(stored.url, pair);
  return { endpoint, token: undefined, expiresAt, user: stored.user, source: "certificate" };
}

/** What `svc login --certificate` reports. */
export interface CertificateInfo {
  certificate: string;
  /** Null if it is in the keychain. */
  key: string | null;
  url: string;
  expires_at: string;
  sign_in_expires_at: string;
}

export function describeCertificate(
  env: Environment,
  base: string,
  { url, key, sign_in_expires_at }: StoredCertificate,
): CertificateInfo {
  const files = certificateFiles(env, base);
  const expires_at = endOf({ cert: readCertificate(env, files.certificate) }).toISOString();
  return {
    certificate: files.certificate,
    key: key === "file" ? files.key : null,
    url,
    expires_at,
    sign_in_expires_at,
  };
}

/**
 * Gets a certificate with a new token, and stores it in place of the user's previous one, which is revoked. The key stays
 * the same in the same place, so that a program that reads both files never sees two that do not match.
 */
export async function obtainCertificate(
  io: Io,
  server: Server,
  {
    token,
    user,
    storage,
    before,
  }: { token: Session["token"]; user: string; storage: "file" | "keychain"; before: Entry | undefined },
): Promise<StoredCertificate> {
  const old = before?.certificate;
  const oldPair = old && (await readPair(io, server, old).catch(() => undefined));
  const key = (old?.key === storage && oldPair?.key) || newKey();
  const { cert, ...answer } = await askFor(io, server, token, key);
  const stored: StoredCertificate = { user, key: storage, ...answer };
  const files = certificateFiles(io.env, server.base);
  try {
    if (storage === "keychain") await fromKeychain(() => io.keychain.set(keyName(server.base), key));
    storing(dirname(files.key), () => {
      makePrivateDirectory(io.env, dirname(files.key));
      updateCredentials(io.env, (all) => {
        if (storage === "file" && key !== oldPair?.key) writePrivately(files.key, key);
        rewrite(files.certificate, cert);
        // Last: until here, the previous certificate may still need it.
        if (storage === "keychain") fs.rmSync(files.key, { force: true });
        return withCertificate(all, server.base, stored);
      });
    });
  } catch (error) {
    // Nothing would ever use or revoke it.
    const fault = await revokeAnywhere(io, server, { stored, pair: { key, cert }, token }).then(
      () => "the certificate was revoked",
      (cause: Error) => `the certificate could not be revoked (${cause.message})`,
    );
    if (!(error instanceof SvcError)) throw error;
    throw new SvcError(error.code, `${error.detail}; ${fault}`, { cause: error });
  }
  if (old?.key === "keychain" && storage === "file")
    await io.keychain.delete(keyName(server.base)).catch(() => {});
  if (old && oldPair) {
    const ended = { endpoint: endpointOf(old.url, oldPair) };
    await io
      .interruptible((signal) => revoke(io, ended, signal))
      .catch((error: Error) => {
        if (error instanceof Unauthenticated) return;
        const until = endOf(oldPair).toISOString();
        io.stderr.write(
          `svc: warning: the replaced certificate could not be revoked (${error.message}) and is valid until ${until}\n`,
        );
      });
  }
  return stored;
}

/**
 * Revokes the certificate and deletes it here, even if it cannot be revoked.
 *
 * @returns whether a valid one was revoked, and why it could not be
 */
export async function endCertificate(
  io: Io,
  server: Server,
  { certificate: stored }: Entry,
  token: Session["token"],
): Promise<{ revoked: boolean; fault?: string }> {
  if (stored === undefined) return { revoked: false };
  let revoked = false;
  let fault: string | undefined;
  try {
    const pair = await readPair(io, server, stored);
    revoked = await revokeAnywhere(io, server, { stored, pair, token });
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    fault = error.detail;
  }
  if (stored.key === "keychain") await io.keychain.delete(keyName(server.base)).catch(() => {});
  const files = certificateFiles(io.env, server.base);
  // Together, or a renewal would write its certificate in between.
  updateCredentials(io.env, (all) => {
    for (const path of [files.key, files.certificate, journalOf(files.certificate)])
      storing(path, () => fs.rmSync(path, { force: true }));
    return withCertificate(all, server.base, undefined);
  });
  return { revoked, fault };
}

/**
 * Revokes a certificate with itself, or with the token if the certificate's address cannot be reached.
 *
 * @returns false if it was no longer valid
 * @throws Unavailable
 */
async function revokeAnywhere(
  io: Io,
  server: Server,
  { stored, pair, token }: { stored: StoredCertificate; pair: KeyPair; token: Session["token"] },
): Promise<boolean> {
  if (!isCurrent(pair, io.clock.now())) await askServerClock(io, server);
  if (endOf(pair) <= io.clock.now()) return false;
  const serial = new X509Certificate(pair.cert).serialNumber.toLowerCase();
  try {
    await io.interruptible(async (signal) => {
      try {
        await revoke(io, { endpoint: endpointOf(stored.url, pair) }, signal);
      } catch (error) {
        if (!(error instanceof Unavailable) || token === undefined) throw error;
        const options = { method: "DELETE" as const, headers: authorization({ token }), signal };
        const answer = await request(io, server, `${server.base}/certificates/${serial}`, options);
        if (answer.status >= 400) throw error;
      }
    });
    return true;
  } catch (error) {
    if (error instanceof Unauthenticated) return false;
    if (!(error instanceof SvcError)) throw error;
    const until = endOf(pair).toISOString();
    throw new Unavailable(`${error.detail}; deleted here, but the certificate is valid until ${until}`);
  }
}

/**
 * Renews a certificate, unless another process does so now. If that fails, the command continues: the certificate is still
 * valid, and a later command tries again.
 */
async function renew(io: Io, server: Server, stored: StoredCertificate, pair: KeyPair): Promise<KeyPair> {
  const { base } = server;
  const now = io.clock.now();
  const renewing_until = new Date(now.getTime() + renewalSeconds * 1000).toISOString();
  const { certificate: file } = certificateFiles(io.env, base);
  let mine = false;
  let current = pair;
  try {
    updateCredentials(io.env, (all) => {
      const known = all.servers[base]?.certificate;
      if (known === undefined || (known.renewing_until && new Date(known.renewing_until) > now)) return all;
      // Another process may have renewed it since this one read it.
      const cert = firstCertificate(readFile(file));
      if (cert && isOfKey(cert, pair.key)) current = { key: pair.key, cert };
      mine = isDue(current, known, now);
      return mine ? withCertificate(all, base, { ...known, renewing_until }) : all;
    });
    if (!mine) return current;
    const at = endpointOf(stored.url, pair);
    const { cert, ...answer } = await askFor(io, at, undefined, pair.key, renewalRequestSeconds);
    updateCredentials(io.env, (all) => {
      const known = all.servers[base]?.certificate;
      // Do not overwrite the certificate of another sign-in, nor write one after a sign-out.
      if (known?.renewing_until !== renewing_until) return all;
      rewrite(file, cert);
      return withCertificate(all, base, { ...known, ...answer, renewing_until: undefined });
    });
    return { key: pair.key, cert };
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    if (mine) postpone(io, base, renewing_until);
    // Otherwise the next request gets the same answer.
    if (!(error instanceof Unauthenticated)) warnOfEnd(io, pair, error);
    return pair;
  }
}

/** After a failed renewal: the next attempt would delay another command. */
function postpone(io: Io, base: string, renewing_until: string): void {
  const later = new Date(io.clock.now().getTime() + retrySeconds * 1000).toISOString();
  try {
    updateCredentials(io.env, (all) => {
      const known = all.servers[base]?.certificate;
      if (known?.renewing_until !== renewing_until) return all;
      return withCertificate(all, base, { ...known, renewing_until: later });
    });
  } catch (error) {
    // A full or read-only disk, which may be why the renewal failed.
    if (!(error instanceof SvcError)) throw error;
  }
}

function warnOfEnd(io: Io, pair: KeyPair, error: SvcError): void {
  const { validFrom, validTo } = new X509Certificate(pair.cert);
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  if (to - io.clock.now().getTime() > (to - from) * shareForWarning) return;
  io.stderr.write(
    `svc: warning: the client certificate ends at ${new Date(to).toISOString()} and could not be renewed (${error.detail})\n`,
  );
}

/** Whether two thirds of its lifetime are over, and up to a twelfth more, which differs between certificates. */
function isDue({ cert }: KeyPair, stored: StoredCertificate, now: Date): boolean {
  const { validFrom, validTo, fingerprint256 } = new X509Certificate(cert);
  const [from, to] = [Date.parse(validFrom), Date.parse(validTo)];
  const jitter = Number.parseInt(fingerprint256.slice(0, 2), 16) / 256 / 12;
  const canBeLonger = to < Date.parse(stored.sign_in_expires_at) - 1000;
  return canBeLonger && now.getTime() < to && now.getTime() >= from + (to - from) * (2 / 3 + jitter);
}

function isCurrent({ cert }: KeyPair, now: Date): boolean {
  const { validFrom, validTo } = new X509Certificate(cert);
  return Date.parse(validFrom) <= now.getTime() && now.getTime() < Date.parse(validTo);
}

/** Has a key certified, by a token or by the certificate of `server`. @throws SvcError */
async function askFor(
  io: Io,
  server: Server,
  token: Session["token"],
  key: string,
  timeout = requestSeconds,
) {
  const csr = await requestFor(key);
  const answer = await io.interruptible((signal) =>
    request(io, server, `${server.base}/certificates/`, {
      method: "POST",
      headers: authorization({ token }),
      body: { csr },
      signal,
      timeout,
    }),
  );
  if (answer.status !== 201) throw problem(answer, server);
  const { certificate, mtls_url: url, sign_in_expires_at } = answer.body;
  const cert = typeof certificate === "string" ? firstCertificate(certificate) : undefined;
  const isValid =
    cert !== undefined &&
    new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)) &&
    typeof url === "string" &&
    isHttps(url) &&
    typeof sign_in_expires_at === "string" &&
    !Number.isNaN(Date.parse(sign_in_expires_at));
  if (!isValid) throw new Unavailable(`${server.base} answered with an invalid certificate`);
  return { cert, url: String(url), sign_in_expires_at };
}

/** A certificate signing request (PKCS #10, PEM) for the key. The server reads only the key from it. */
async function requestFor(key: string): Promise<string> {
  await import("reflect-metadata");
  const { Pkcs10CertificateRequestGenerator } = await import("@peculiar/x509");
  const privateKey = createPrivateKey(key);
  const encoded = {
    private: privateKey.export({ type: "pkcs8", format: "der" }),
    public: createPublicKey(privateKey).export({ type: "spki", format: "der" }),
  };
  const keys = {
    privateKey: await crypto.subtle.importKey("pkcs8", encoded.private, publicKeyAlgorithm, true, ["sign"]),
    publicKey: await crypto.subtle.importKey("spki", encoded.public, publicKeyAlgorithm, true, ["verify"]),
  };
  const made = await Pkcs10CertificateRequestGenerator.create({ keys, signingAlgorithm: publicKeyAlgorithm });
  return made.toString("pem");
}

function newKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }) as string;
}

function endpointOf(url: string, tls: KeyPair): Server {
  return { ...parseServer(url, (fault) => new Unavailable(fault)), tls };
}

const endOf = ({ cert }: Pick<KeyPair, "cert">) => new Date(new X509Certificate(cert).validTo);
