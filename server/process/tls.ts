import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { ConfigurationError } from "../../platform/errors.ts";
import { whyUnreadable } from "../../platform/unreadable.ts";
import type { StartOptions } from "./options.ts";

/** The last one may be truncated. */
const certificates = /-----BEGIN CERTIFICATE-----.+?(?:-----END CERTIFICATE-----|$)/gs;

interface TlsFiles extends Pick<StartOptions, "sslKeyfile" | "sslCertfile" | "sslCaCerts"> {
  /** The options that name the files begin with it. */
  prefix?: "--ssl" | "--mtls";
}

/** The files of the mTLS port: its own, or those of the other port. */
export function mtlsFilesOf(
  options: Pick<StartOptions, "sslKeyfile" | "sslCertfile" | "mtlsKeyfile" | "mtlsCertfile">,
): TlsFiles {
  const { mtlsKeyfile: sslKeyfile, mtlsCertfile: sslCertfile } = options;
  return sslCertfile === undefined
    ? { ...options, sslCaCerts: undefined }
    : { sslKeyfile, sslCertfile, prefix: "--mtls" };
}

/**
 * Reads the TLS options; undefined without a certificate.
 * @throws ConfigurationError that names the unusable file
 */
export function tlsOf(files: TlsFiles): Bun.TLSOptions | undefined {
  return usable(files)?.tls;
}

/**
 * Warns of the certificates of both ports that clients would refuse at this time.
 * @throws ConfigurationError like `tlsOf`
 */
export function certificateWarnings(
  options: Parameters<typeof mtlsFilesOf>[0] & TlsFiles,
  now: Date,
): string[] {
  const ofPorts = options.mtlsCertfile === undefined ? [options] : [options, mtlsFilesOf(options)];
  return ofPorts.flatMap((files) => warningOf(files, now) ?? []);
}

function warningOf(files: TlsFiles, now: Date): string | undefined {
  const { validFromDate, validToDate } = usable(files)?.certificate ?? {};
  const refused = "clients will refuse it";
  const option = `${files.prefix ?? "--ssl"}-certfile`;
  if (validToDate && now > validToDate)
    return `${option}: ${files.sslCertfile} has expired at ${validToDate.toISOString()}: ${refused}`;
  if (validFromDate && now < validFromDate)
    return `${option}: ${files.sslCertfile} is valid from ${validFromDate.toISOString()} on: until then ${refused}`;
  return undefined;
}

function usable({ sslKeyfile, sslCertfile, sslCaCerts, prefix = "--ssl" }: TlsFiles) {
  if (sslKeyfile === undefined || sslCertfile === undefined) return undefined;
  const [keyOption, option] = [`${prefix}-keyfile`, `${prefix}-certfile`];
  const key = read(keyOption, sslKeyfile);
  const cert = read(option, sslCertfile);
  const certificate = certificateOf(option, sslCertfile, cert);
  if (!certificate.checkPrivateKey(keyOf(keyOption, sslKeyfile, key))) {
    throw new ConfigurationError([
      `${keyOption}: ${sslKeyfile} is not the key of the first certificate in ${sslCertfile}`,
    ]);
  }
  if (sslCaCerts === undefined) return { certificate, tls: { key, cert } };
  const ca = read("--ssl-ca-certs", sslCaCerts);
  certificateOf("--ssl-ca-certs", sslCaCerts, ca);
  // With authorities, only clients with a certificate of theirs are accepted.
  return { certificate, tls: { key, cert, ca, requestCert: true, rejectUnauthorized: true } };
}

function read(option: string, file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new ConfigurationError([`${option}: cannot read ${file}: ${whyUnreadable(cause)}`], { cause });
  }
}

/**
 * Returns the first certificate of a file. The others are checked, too: a server cannot listen with a broken chain, and
 * authorities after a broken one would be ignored, which would lock out their clients.
 */
function certificateOf(option: string, file: string, pem: string): X509Certificate {
  const [first = pem, ...chain] = pem.match(certificates) ?? [];
  let fault = "does not begin with a certificate in PEM";
  try {
    const certificate = new X509Certificate(first);
    fault = "contains a certificate after the first that cannot be read";
    for (const other of chain) new X509Certificate(other);
    return certificate;
  } catch (cause) {
    throw new ConfigurationError([`${option}: ${file} ${fault}`], { cause });
  }
}

function keyOf(option: string, file: string, pem: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (cause) {
    const locked = (cause as { code?: string }).code === "ERR_MISSING_PASSPHRASE";
    const reason = locked
      ? "is encrypted with a password, which is not supported"
      : "holds no private key in PEM";
    throw new ConfigurationError([`${option}: ${file} ${reason}`], { cause });
  }
}
