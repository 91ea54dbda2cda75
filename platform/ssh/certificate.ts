import { type KeyObject, randomBytes, sign } from "node:crypto";
import type { SshPublicKey } from "./public_key.ts";
import { sshString, sshUint32, sshUint64 } from "./wire.ts";

// OpenSSH user certificates (PROTOCOL.certkeys), signed with Ed25519.

/** The extensions that OpenSSH supports. A certificate without extensions can only run commands. */
export const sshExtensions = [
  "permit-X11-forwarding",
  "permit-agent-forwarding",
  "permit-port-forwarding",
  "permit-pty",
  "permit-user-rc",
  "no-touch-required",
] as const;

export interface SshCertificateFacts {
  key: SshPublicKey;
  serial: number;
  /** Appears in the logs of hosts. */
  keyId: string;
  /** Must not be empty: OpenSSH would accept the certificate for every account. */
  principals: readonly string[];
  validAfter: Date;
  validBefore: Date;
  criticalOptions: Readonly<Record<string, string>>;
  extensions: readonly string[];
}

/** The signing key, and its public half in wire encoding. */
export interface SshSigner {
  privateKey: KeyObject;
  blob: Uint8Array;
}

const userCertificate = 1;

/** Signs a certificate. Returns the line of a `-cert.pub` file, without a comment. */
export function signSshCertificate(facts: SshCertificateFacts, { privateKey, blob }: SshSigner): string {
  const { key, serial, keyId, principals, validAfter, validBefore, criticalOptions, extensions } = facts;
  if (principals.length === 0) throw new RangeError("A certificate needs principals");
  const type = `${key.type}-cert-v01@openssh.com`;
  const options = Object.entries(criticalOptions).sort(byName);
  const body = Buffer.concat([
    sshString(type),
    sshString(randomBytes(32)),
    key.fields,
    sshUint64(serial),
    sshUint32(userCertificate),
    sshString(keyId),
    sshString(Buffer.concat(principals.map(sshString))),
    sshUint64(secondsOf(validAfter)),
    sshUint64(secondsOf(validBefore)),
    sshString(
      Buffer.concat(options.flatMap(([name, value]) => [sshString(name), sshString(sshString(value))])),
    ),
    sshString(Buffer.concat([...extensions].sort().flatMap((name) => [sshString(name), sshString("")]))),
    sshString(""),
    sshString(blob),
  ]);
  const signature = Buffer.concat([sshString("ssh-ed25519"), sshString(sign(null, body, privateKey))]);
  return `${type} ${Buffer.concat([body, sshString(signature)]).toString("base64")}`;
}

/** OpenSSH requires options to be sorted by name. */
const byName = ([a]: [string, string], [b]: [string, string]) => (a < b ? -1 : 1);

const secondsOf = (at: Date) => Math.floor(at.getTime() / 1000);
