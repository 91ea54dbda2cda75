import { createPublicKey, generateKeyPairSync } from "node:crypto";
import * as fs from "node:fs";
import { dirname, join } from "node:path";
import { ConfigurationError, Unavailable } from "../../platform/errors.ts";
import type { SshKeyPair } from "../../platform/ssh/private_key.ts";
import { lockCredentials } from "../client/credentials_file.ts";
import { makePrivateDirectory, privateDirectory, storing, writePrivately } from "../client/private_file.ts";
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

const names = { ssh: "SSH", x509: "X.509" } as const;

/** Runs `svc access get` with the format of a certificate: stores it next to the key, and prints what to type. */
export async function getCertificate(
  io: Io,
  kind: keyof typeof names,
  { role, wanted }: { role: string; wanted: Wanted },
): Promise<void> {
  await AccessClient.within(io, async (client) => {
    const path = join(privateDirectory(io.env, client.session.server.base, kind), role);
    const issued = await client.obtain(role, wanted, async ({ public_key }) => {
      if (public_key !== kind)
        throw new UsageError(`${role} does not issue ${names[kind]} certificates: use --format json`);
      return kind === "ssh" ? sshKey(io, path, role) : x509Key(io, path);
    });
    const store = kind === "ssh" ? storeSsh : storeX509;
    io.stdout.write(await client.use(issued, () => storing(path, () => store(path, issued))));
    io.stderr.write(`Until ${localTime(issued.expires_at)}\n`);
  });
}

// Each returns the public part of this machine's key for a role, and generates the key on first use. Renewed certificates use
// the same key: otherwise, a crash or a full disk could leave a certificate next to the key of another. Without the lock, of
// two first commands at once, one could write its public key next to the other's key.

/** ssh looks for `<path>.pub` and `<path>-cert.pub` next to the key. @throws ConfigurationError */
async function sshKey(io: Io, path: string, role: string): Promise<string> {
  const { newSshKeyPair, sshPrivateKeyFile, sshPublicLine } =
    await import("../../platform/ssh/private_key.ts");
  return lockCredentials(io.env, () =>
    storing(path, () => {
      makePrivateDirectory(io.env, dirname(path));
      if (fs.existsSync(path) && fs.existsSync(`${path}.pub`)) {
        assertPrivate(path);
        return fs.readFileSync(`${path}.pub`, "utf8").trim();
      }
      const key = newSshKeyPair();
      const publicKey = sshPublicLine(key, `svc ${role}`);
      writePrivately(path, sshPrivateKeyFile(key, `svc ${role}`));
      writePrivately(`${path}.pub`, `${publicKey}\n`);
      return publicKey;
    }),
  );
}

/** @throws ConfigurationError */
function x509Key(io: Io, directory: string): string {
  const path = join(directory, "key.pem");
  return lockCredentials(io.env, () =>
    storing(path, () => {
      makePrivateDirectory(io.env, directory);
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

// Each writes the certificate where programs find it, and returns the command to type.

function storeSsh(path: string, issued: Issued): string {
  writePrivately(`${path}-cert.pub`, `${certificateIn(issued, "ssh")}\n`);
  const { fields } = issued.credential;
  const { host = "HOST", user = fields.principals?.split(",")[0] ?? "USER" } = fields;
  return `ssh -i ${shellWord(path)} -o IdentitiesOnly=yes ${shellWord(`${user}@${host}`)}\n`;
}

function storeX509(directory: string, issued: Issued): string {
  const [key, certificate] = [join(directory, "key.pem"), join(directory, "certificate.pem")];
  writePrivately(certificate, x509Chain(issued));
  return `curl --cert ${shellWord(certificate)} --key ${shellWord(key)} https://HOST\n`;
}

/** The certificate, followed by its authority's certificate. @throws Unavailable for credentials of another kind */
export function x509Chain(issued: Issued): string {
  return `${certificateIn(issued, "x509")}${issued.credential.fields.chain ?? ""}`;
}

function certificateIn({ credential: { kind, fields } }: Issued, wanted: keyof typeof names): string {
  if (kind === wanted && fields.certificate !== undefined) return fields.certificate;
  throw new Unavailable(
    `The credential is not an ${names[wanted]} certificate but of kind ${kind}: use --format json`,
  );
}
