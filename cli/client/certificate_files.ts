import { createPrivateKey, X509Certificate } from "node:crypto";
import * as fs from "node:fs";
import { join } from "node:path";
import { ConfigurationError } from "../../platform/errors.ts";
import type { Environment } from "../../platform/variable.ts";
import type { Io } from "../io.ts";
import type { StoredCertificate } from "./credentials.ts";
import { lockCredentials } from "./credentials_file.ts";
import { fromKeychain, privateDirectory, storing, writePrivately } from "./private_file.ts";
import type { Server } from "./server.ts";

// The two files of a client certificate and its key, which other clients (curl, Weep) read, too.

/** The certificate's files. The key is not in its file if it is in the keychain. */
export function certificateFiles(env: Environment, base: string): { key: string; certificate: string } {
  const directory = privateDirectory(env, base, "mtls");
  return { key: join(directory, "key.pem"), certificate: join(directory, "certificate.pem") };
}

/** A key and its certificate, as `Server.tls` takes them. */
export type KeyPair = NonNullable<Server["tls"]>;
/** Its name in the keychain. */
export const keyName = (base: string) => `${base} (certificate)`;

/** @throws ConfigurationError if a file is missing or damaged, or the certificate is of another key */
export async function readPair(io: Io, { base }: Server, stored: StoredCertificate): Promise<KeyPair> {
  const files = certificateFiles(io.env, base);
  const cert = readCertificate(io.env, files.certificate);
  const key =
    stored.key === "keychain"
      ? await fromKeychain(() => io.keychain.get(keyName(base)))
      : readKeyFile(files.key);
  if (key === null) throw unusable("the key of the client certificate is not in the keychain");
  if (!isOfKey(cert, key))
    throw unusable(
      `${files.certificate} is not for the key ${stored.key === "file" ? files.key : "in the keychain"}`,
    );
  return { key, cert };
}

export function isOfKey(cert: string, key: string): boolean {
  const parsed = parseKey(key);
  return parsed !== undefined && new X509Certificate(cert).checkPrivateKey(parsed);
}

function readKeyFile(path: string): string {
  const text = readFile(path);
  if (process.platform !== "win32" && (fs.statSync(path).mode & 0o077) !== 0)
    throw unusable(`${path} can be read by others`);
  return text;
}

function parseKey(key: string): ReturnType<typeof createPrivateKey> | undefined {
  try {
    return createPrivateKey(key);
  } catch {
    return undefined;
  }
}

export function readCertificate(env: Environment, path: string): string {
  // Another process is writing it, or did not finish.
  if (fs.existsSync(journalOf(path))) lockCredentials(env, () => finishRewrite(path));
  const cert = firstCertificate(readFile(path));
  if (cert === undefined) throw unusable(`${path} is damaged`);
  return cert;
}

export function readFile(path: string): string {
  try {
    return fs.readFileSync(path, "utf8");
  } catch (cause) {
    const { code = "failed" } = cause as NodeJS.ErrnoException;
    throw unusable(`${path} cannot be read (${code})`, cause);
  }
}

const unusable = (fault: string, cause?: unknown) =>
  new ConfigurationError([`${fault}; to fix it: svc login --certificate`], { cause });

/** The first certificate of a text: after a crash, the end of a longer one may follow. */
export function firstCertificate(text: string): string | undefined {
  const [pem] = /-----BEGIN CERTIFICATE-----[\w+/=\s]+-----END CERTIFICATE-----/.exec(text) ?? [];
  try {
    return pem && new X509Certificate(pem) && `${pem}\n`;
  } catch {
    return undefined;
  }
}

/** What `rewrite` is about to write, so that a crash or a full disk in the middle loses nothing. */
export const journalOf = (path: string) => `${path}.next`;

/** Keeps the file, because other programs watch it. Only under the lock of the credentials. @throws ConfigurationError */
export function rewrite(path: string, text: string): void {
  storing(path, () => {
    fs.rmSync(journalOf(path), { force: true });
    writePrivately(journalOf(path), text);
    writeInPlace(path, text);
    fs.rmSync(journalOf(path), { force: true });
  });
}

/** Completes a `rewrite` whose process ended. Only under the lock of the credentials. */
function finishRewrite(path: string): void {
  if (!fs.existsSync(journalOf(path))) return;
  const text = readFile(journalOf(path));
  if (firstCertificate(text)) storing(path, () => writeInPlace(path, text));
  storing(path, () => fs.rmSync(journalOf(path), { force: true }));
}

function writeInPlace(path: string, text: string): void {
  const file = fs.openSync(path, fs.constants.O_RDWR | fs.constants.O_CREAT, 0o600);
  try {
    fs.writeSync(file, text, 0);
    fs.ftruncateSync(file, Buffer.byteLength(text));
    fs.fsyncSync(file);
  } finally {
    fs.closeSync(file);
  }
}
