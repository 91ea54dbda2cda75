import { generateKeyPairSync, randomBytes } from "node:crypto";
import { sshString, sshUint32 } from "./wire.ts";

/** A client's Ed25519 key. */
export interface SshKeyPair {
  /** 32 bytes each. */
  seed: Buffer;
  publicKey: Buffer;
}

const type = "ssh-ed25519";
const blockBytes = 8;

export function newSshKeyPair(): SshKeyPair {
  const { d, x } = generateKeyPairSync("ed25519").privateKey.export({ format: "jwk" });
  return { seed: Buffer.from(d!, "base64url"), publicKey: Buffer.from(x!, "base64url") };
}

const blobOf = ({ publicKey }: SshKeyPair) => Buffer.concat([sshString(type), sshString(publicKey)]);

/** Formats a line of a `.pub` file. */
export function sshPublicLine(pair: SshKeyPair, comment: string): string {
  return `${type} ${blobOf(pair).toString("base64")} ${comment}`;
}

/** Formats a private key file without a passphrase (OpenSSH's PROTOCOL.key). */
export function sshPrivateKeyFile(pair: SshKeyPair, comment: string): string {
  const blob = blobOf(pair);
  const check = randomBytes(4);
  const secret = Buffer.concat([
    check,
    check,
    blob,
    sshString(Buffer.concat([pair.seed, pair.publicKey])),
    sshString(comment),
  ]);
  const padding = (blockBytes - (secret.length % blockBytes)) % blockBytes;
  const padded = Buffer.concat([secret, Buffer.from(Array.from({ length: padding }, (_, i) => i + 1))]);
  const file = Buffer.concat([
    Buffer.from("openssh-key-v1\0"),
    sshString("none"),
    sshString("none"),
    sshString(""),
    sshUint32(1),
    sshString(blob),
    sshString(padded),
  ]);
  const lines = file
    .toString("base64")
    .match(/.{1,70}/g)!
    .join("\n");
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines}\n-----END OPENSSH PRIVATE KEY-----\n`;
}

const addConstrained = 25;
const lifetimeConstraint = 1;

/** The message that adds a key with its certificate to an agent for a number of seconds (draft-ietf-sshm-ssh-agent). */
export function sshAddCertificateMessage(
  { seed, publicKey }: SshKeyPair,
  { certificate, comment, seconds }: { certificate: string; comment: string; seconds: number },
): Buffer {
  const [certificateType, base64] = certificate.split(" ");
  return sshString(
    Buffer.concat([
      Buffer.of(addConstrained),
      sshString(certificateType!),
      sshString(Buffer.from(base64!, "base64")),
      sshString(publicKey),
      sshString(Buffer.concat([seed, publicKey])),
      sshString(comment),
      Buffer.of(lifetimeConstraint),
      sshUint32(seconds),
    ]),
  );
}
