import { createPublicKey, generateKeyPairSync } from "node:crypto";
import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { ConfigurationError, Unavailable } from "../../platform/errors.ts";
import type { SshKeyPair } from "../../platform/ssh/private_key.ts";
import { lockCredentials } from "../client/credentials_file.ts";
import { makePrivateDirectory, privateDirectory, storing, writePrivately } from "../client/private_file.ts";
import type { Session } from "../client/session.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { shellWord } from "../text.ts";
import { localTime } from "../when.ts";
import { AccessClient, type Issued, type Wanted } from "./access.ts";

// Keys for certificates. They are generated on this machine and never leave it.

export async function newSshKey(comment: string): Promise<{ key: SshKeyPair; publicKey: string }> {
  const { newSshKeyPair, sshPublicLine } = await import("../../platform/ssh/private_key.ts");
  const key = newSshKeyPair();
  return { key, publicKey: sshPublicLine(key, comment) };
}

/** Generates a P-256 key, in PEM. */
export function newX509Key(): { privateKey: string; publicKey: string } {
  return generateKeyPairSync("ec", {
    namedCurve: "P-256",
    privateKeyEncoding: { type: "pkcs8", format: "pem" },
    publicKeyEncoding: { type: "spki", format: "pem" },
  });
}

/** Runs `svc access get --format x509`. */
export async function getX509Access(
  io: Io,
  { role, wanted }: { role: string; wanted: Wanted },
): Promise<void> {
  await AccessClient.within(io, async (client) => {
    const directory = join(privateDirectory(io.env, client.session.server.base, "x509"), role);
    const paths = { key: join(directory, "key.pem"), certificate: join(directory, "certificate.pem") };
    const issued = await client.obtain(role, wanted, async (found) => {
      if (found.public_key !== "x509")
        throw new UsageError(`${role} does not issue X.509 certificates: use --format json`);
      return x509KeyFile(io, paths.key);
    });
    await client.use(issued, () =>
      storing(directory, () => writePrivately(paths.certificate, x509Chain(issued))),
    );
    io.stdout.write(
      `curl --cert ${shellWord(paths.certificate)} --key ${shellWord(paths.key)} https://HOST\n`,
    );
    io.stderr.write(`Until ${localTime(issued.expires_at)}\n`);
  });
}

/**
 * Returns the public part of this machine's X.509 key for a role, and generates the key on first use. Renewed certificates
 * use the same key: otherwise, a crash or a full disk could leave a certificate next to the key of another.
 *
 * @throws ConfigurationError if other users can read it, or if it cannot be read or written
 */
function x509KeyFile(io: Io, path: string): string {
  return lockCredentials(io.env, () =>
    storing(path, () => {
      makePrivateDirectory(io.env, dirname(path));
      if (!fs.existsSync(path)) {
        const { privateKey, publicKey } = newX509Key();
        writePrivately(path, privateKey);
        return publicKey;
      }
      assertPrivate(path);
      const text = fs.readFileSync(path, "utf8");
      try {
        return createPublicKey(text).export({ type: "spki", format: "pem" }).toString();
      } catch (cause) {
        throw new ConfigurationError([`${path} is damaged; to fix it: rm ${path}`], { cause });
      }
    }),
  );
}

function assertPrivate(path: string): void {
  if ((fs.statSync(path).mode & 0o077) !== 0)
    throw new ConfigurationError([`${path} can be read by others; to fix it: rm ${path}`]);
}

/** The certificate, followed by its authority's certificate. @throws Unavailable for credentials of another kind */
export function x509Chain({ credential: { kind, fields } }: Issued): string {
  if (kind !== "x509" || fields.certificate === undefined)
    throw new Unavailable(
      `The credential is not an X.509 certificate but of kind ${kind}: use --format json`,
    );
  return `${fields.certificate}${fields.chain ?? ""}`;
}

/** Runs `svc access get --format ssh`. */
export async function getSshAccess(
  io: Io,
  { role, wanted }: { role: string; wanted: Wanted },
): Promise<void> {
  await AccessClient.within(io, async (client) => {
    let file: SshKeyFile;
    const issued = await client.obtain(role, wanted, async (found) => {
      if (found.public_key !== "ssh")
        throw new UsageError(`${role} does not issue SSH certificates: use --format json`);
      file = await sshKeyFile(io, client.session, found.slug);
      return file.publicKey;
    });
    io.stdout.write(await client.use(issued, () => writeSshCertificate(file, issued)));
    io.stderr.write(`Until ${localTime(issued.expires_at)}\n`);
  });
}

/** A private key file. ssh looks for `<path>.pub` and `<path>-cert.pub` next to it. */
export interface SshKeyFile {
  path: string;
  publicKey: string;
}

/**
 * Returns this machine's SSH key for a role, and generates it on first use. Renewed certificates use the same key.
 *
 * @throws ConfigurationError if other users can read it, or if it cannot be written
 */
async function sshKeyFile(io: Io, session: Session, role: string): Promise<SshKeyFile> {
  const path = join(privateDirectory(io.env, session.server.base, "ssh"), role);
  const { newSshKeyPair, sshPrivateKeyFile, sshPublicLine } =
    await import("../../platform/ssh/private_key.ts");
  // Without the lock, of two first commands at once, one could write its public key next to the other's key.
  return lockCredentials(io.env, () =>
    storing(path, () => {
      makePrivateDirectory(io.env, dirname(path));
      if (fs.existsSync(path) && fs.existsSync(`${path}.pub`)) {
        assertPrivate(path);
        return { path, publicKey: fs.readFileSync(`${path}.pub`, "utf8").trim() };
      }
      const key = newSshKeyPair();
      const publicKey = sshPublicLine(key, `svc ${role}`);
      writePrivately(path, sshPrivateKeyFile(key, `svc ${role}`));
      writePrivately(`${path}.pub`, `${publicKey}\n`);
      return { path, publicKey };
    }),
  );
}

/** Writes the certificate where ssh finds it. Returns the command to type. @throws Unavailable for other kinds */
function writeSshCertificate({ path }: SshKeyFile, issued: Issued): string {
  const { kind, fields } = issued.credential;
  if (kind !== "ssh" || fields.certificate === undefined)
    throw new Unavailable(`The credential is not an SSH certificate but of kind ${kind}: use --format json`);
  const certificate = `${path}-cert.pub`;
  storing(certificate, () => writePrivately(certificate, `${fields.certificate}\n`));
  const { host = "HOST", user = fields.principals?.split(",")[0] ?? "USER" } = fields;
  return `ssh -i ${shellWord(path)} -o IdentitiesOnly=yes ${shellWord(`${user}@${host}`)}\n`;
}
