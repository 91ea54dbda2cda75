import { constants, type KeyObject, verify } from "node:crypto";
import { type Element, readElement, readElements, SEQUENCE } from "./der.ts";

// Certificate revocation lists (RFC 5280, 5.1). Read here, because @peculiar/x509 refuses lists of a few thousand entries,
// and Node has no parser for them.

const [BOOLEAN, INTEGER, BIT_STRING, OID, UTC_TIME, GENERALIZED_TIME] = [0x01, 0x02, 0x03, 0x06, 0x17, 0x18];

export interface RevocationList {
  /** The name of its authority, in DER. */
  issuer: Uint8Array;
  /** Serial numbers in hexadecimal. */
  serials: string[];
  isSignedBy(key: KeyObject): boolean;
}

/** @throws RangeError if it is malformed, or signed with an unknown algorithm */
export function readRevocationList(der: Uint8Array): RevocationList {
  const [signed, algorithm, signature, ...more] = readElements(readElement(der, SEQUENCE));
  if (signed?.tag !== SEQUENCE || algorithm?.tag !== SEQUENCE || signature?.tag !== BIT_STRING || more.length)
    throw new RangeError("not a revocation list");
  if (signature.content[0] !== 0) throw new RangeError("a signature with unused bits");
  const fields = readElements(signed.content);
  if (fields[0]?.tag === INTEGER) fields.shift();
  const [inside, issuer, thisUpdate, ...rest] = fields;
  if (issuer?.tag !== SEQUENCE || !isTime(thisUpdate)) throw new RangeError("not a revocation list");
  // Otherwise another algorithm than the signed one could be claimed.
  if (!inside || !Buffer.from(inside.raw).equals(algorithm.raw))
    throw new RangeError("two signature algorithms");
  if (isTime(rest[0])) rest.shift();
  const entries = rest[0]?.tag === SEQUENCE ? readElements(rest[0].content) : [];
  const serials = entries.map(({ content }) => {
    const [serial, , extensions] = readElements(content);
    if (serial?.tag !== INTEGER) throw new RangeError("an entry without a serial number");
    // The only one is the authority of a certificate, if it is not that of the list (RFC 5280, 5.3.3).
    if (extensions && readElements(extensions.content).some(isCritical))
      throw new RangeError("an entry with a critical extension");
    return Buffer.from(serial.content).toString("hex");
  });
  const { type, hash, padding } = signatureOf(algorithm.content);
  return {
    issuer: issuer.raw,
    serials,
    isSignedBy: (key) =>
      key.asymmetricKeyType?.startsWith(type) === true &&
      verify(hash, signed.raw, { key, padding }, signature.content.subarray(1)),
  };
}

function isCritical({ content }: Element): boolean {
  const [, critical] = readElements(content);
  return critical?.tag === BOOLEAN && critical.content[0] !== 0;
}

const isTime = (element: Element | undefined) =>
  element?.tag === UTC_TIME || element?.tag === GENERALIZED_TIME;

const hashes: Record<string, string> = {
  "2b0e03021a": "sha1",
  "608648016503040201": "sha256",
  "608648016503040202": "sha384",
  "608648016503040203": "sha512",
};
interface SignatureAlgorithm {
  /** How the type of its keys begins. */
  type: string;
  hash: string | null;
  padding?: number;
}

const rsa = (hash: string, padding = constants.RSA_PKCS1_PADDING): SignatureAlgorithm => ({
  type: "rsa",
  hash,
  padding,
});
const ecdsa = (hash: string): SignatureAlgorithm => ({ type: "ec", hash });
const pss = "2a864886f70d01010a";
/** By the object identifier, in hexadecimal (RFC 4055, 5758 and 8410). */
const algorithms: Record<string, SignatureAlgorithm> = {
  "2a864886f70d010105": rsa("sha1"),
  "2a864886f70d01010b": rsa("sha256"),
  "2a864886f70d01010c": rsa("sha384"),
  "2a864886f70d01010d": rsa("sha512"),
  "2a8648ce3d0401": ecdsa("sha1"),
  "2a8648ce3d040302": ecdsa("sha256"),
  "2a8648ce3d040303": ecdsa("sha384"),
  "2a8648ce3d040304": ecdsa("sha512"),
  "2b6570": { type: "ed25519", hash: null },
};

function signatureOf(algorithm: Uint8Array): SignatureAlgorithm {
  const [id, parameters] = readElements(algorithm);
  const name = id?.tag === OID ? Buffer.from(id.content).toString("hex") : "";
  if (name !== pss) {
    const known = algorithms[name];
    if (!known) throw new RangeError("an unknown signature algorithm");
    return known;
  }
  // The hash is field 0 of the parameters; SHA-1 without it.
  const [field] = readElements(parameters?.content ?? new Uint8Array()).filter(({ tag }) => tag === 0xa0);
  const [hashId] = field ? readElements(readElement(field.content, SEQUENCE)) : [];
  const hash = hashId ? hashes[Buffer.from(hashId.content).toString("hex")] : "sha1";
  if (!hash) throw new RangeError("an unknown hash");
  return rsa(hash, constants.RSA_PKCS1_PSS_PADDING);
}
