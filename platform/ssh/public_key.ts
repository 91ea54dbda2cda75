import { createHash, createPublicKey, type KeyObject } from "node:crypto";
import { InvalidInput } from "../errors.ts";
import { SshReader, sshMpint, sshString } from "./wire.ts";

// Public keys in OpenSSH's format (RFC 4253, section 6.6; RFC 5656, section 3.1; RFC 8709, section 4).

/** A client's public key. `fields` is the part after the type in the encoding of keys and certificates. */
export interface SshPublicKey {
  type: string;
  fields: Uint8Array;
  blob: Uint8Array;
}

const shortestRsaBits = 3072;
const longestRsaBits = 16_384;
const longestExponent = 4;

const curves: Readonly<Record<string, { curve: string; crv: string; bytes: number }>> = {
  "ecdsa-sha2-nistp256": { curve: "nistp256", crv: "P-256", bytes: 32 },
  "ecdsa-sha2-nistp384": { curve: "nistp384", crv: "P-384", bytes: 48 },
  "ecdsa-sha2-nistp521": { curve: "nistp521", crv: "P-521", bytes: 66 },
};

/**
 * Reads a line of a `.pub` file: Ed25519, ECDSA, or RSA of at least 3072 bits.
 *
 * @throws InvalidInput for any other key, and for a key that is not encoded canonically
 */
export function parseSshPublicKey(line: string): SshPublicKey {
  const [, type, base64] =
    /^([a-z0-9@.-]{1,60}) ([A-Za-z0-9+/]{1,4000}={0,2})(?: [^\r\n]*)?\r?\n?$/.exec(line) ?? [];
  if (type === undefined || base64 === undefined) throw refused("it is not a line of a .pub file");
  const blob = Buffer.from(base64, "base64");
  if (blob.toString("base64") !== base64) throw refused("its base64 is invalid");
  let fields: Buffer;
  try {
    const reader = new SshReader(blob);
    if (reader.text() !== type) throw refused("it names two different types");
    fields = readFields(type, reader);
  } catch (error) {
    if (error instanceof RangeError) throw refused("it is truncated");
    throw error;
  }
  // Refuses trailing bytes and numbers with leading zeros.
  if (!Buffer.concat([sshString(type), fields]).equals(blob)) throw refused("it is not encoded canonically");
  return { type, fields, blob };
}

function readFields(type: string, reader: SshReader): Buffer {
  if (type === "ssh-ed25519") {
    const key = reader.string();
    if (key.length !== 32) throw refused("an Ed25519 key must have 32 bytes");
    return sshString(key);
  }
  if (type === "ssh-rsa") {
    const [exponent, modulus] = [reader.string(), reader.string()].map(withoutSign) as [
      Uint8Array,
      Uint8Array,
    ];
    const bits = modulus.length * 8 - Math.clz32(modulus[0] ?? 0) + 24;
    if (bits < shortestRsaBits)
      throw refused(`an RSA key must have at least ${shortestRsaBits} bits, and this one has ${bits}`);
    if (bits > longestRsaBits) throw refused(`an RSA key must have at most ${longestRsaBits} bits`);
    const e = exponent.length <= longestExponent ? Number(`0x0${Buffer.from(exponent).toString("hex")}`) : 0;
    if (e < 65_537 || e % 2 === 0 || modulus.at(-1)! % 2 === 0)
      throw refused("its RSA exponent or modulus is invalid");
    return Buffer.concat([sshMpint(exponent), sshMpint(modulus)]);
  }
  const known = curves[type];
  if (!known) throw refused(`its type is ${type}: use ssh-ed25519, ecdsa-sha2-* or ssh-rsa`);
  const [curve, point] = [reader.text(), reader.string()];
  if (
    curve !== known.curve ||
    point.length !== 1 + 2 * known.bytes ||
    point[0] !== 4 ||
    !isOnCurve(known, point)
  )
    throw refused("its point is not on the curve");
  return Buffer.concat([sshString(curve), sshString(point)]);
}

const withoutSign = (number: Uint8Array) => (number[0] === 0 ? number.subarray(1) : number);

function isOnCurve({ crv, bytes }: { crv: string; bytes: number }, point: Uint8Array): boolean {
  const [x, y] = [point.subarray(1, 1 + bytes), point.subarray(1 + bytes)].map((half) =>
    Buffer.from(half).toString("base64url"),
  );
  try {
    createPublicKey({ key: { kty: "EC", crv, x, y }, format: "jwk" });
    return true;
  } catch {
    return false;
  }
}

const refused = (why: string) => new InvalidInput("public_key", `Invalid public key: ${why}`);

/** The wire encoding of an Ed25519 key. */
export function sshEd25519Blob(key: KeyObject): Buffer {
  const raw = Buffer.from(key.export({ format: "jwk" }).x!, "base64url");
  return Buffer.concat([sshString("ssh-ed25519"), sshString(raw)]);
}

/** Formats a fingerprint like `ssh-keygen -l`. */
export function sshFingerprint(blob: Uint8Array): string {
  return `SHA256:${createHash("sha256").update(blob).digest("base64").replace(/=+$/, "")}`;
}
