import { RefusedCertificate } from "../../platform/x509/refusal.ts";

// A certificate that a proxy forwards: `Client-Cert` (RFC 9440), which HAProxy and Caddy can send, or a PEM with escapes
// like those of URLs, which is all that nginx can send.

const standard = "client-cert";
const standardChain = "client-cert-chain";
/** A byte sequence of RFC 9651, in the base64 that proxies write. */
const byteSequence = /^:[A-Za-z0-9+/]+={0,2}:$/;
/** HAProxy's header without a certificate, and Caddy's, which has the name of its variable. */
const none = /^(|::|:?\{[\w.]+\}:?)$/;
const pem = /^-----BEGIN CERTIFICATE-----(\s[A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----\s*$/;

/** The headers that only a trusted proxy may send. */
export function forwardedHeaders(configured: string | undefined): string[] {
  return [...new Set([standard, standardChain, ...(configured ? [configured.toLowerCase()] : [])])];
}

/** The certificates in the header of a trusted proxy, the client's first. @throws RefusedCertificate */
export function forwardedChain(headers: Headers, name: string): Uint8Array[] | undefined {
  // Another header than the configured one was not set by the proxy, but passed on.
  const own = name.toLowerCase();
  const passedOn = forwardedHeaders(name).filter(
    (other) => other !== own && !(own === standard && other === standardChain) && headers.has(other),
  );
  if (passedOn.length > 0) throw new RefusedCertificate("malformed header");
  const value = (headers.get(own) ?? "").trim();
  if (none.test(value)) return undefined;
  if (value.startsWith("-----BEGIN%20")) return [fromPem(value)];
  const chain = own === standard ? (headers.get(standardChain) ?? "").trim() : "";
  const above = chain === "" || none.test(chain) ? [] : chain.split(",").map((one) => one.trim());
  return [value, ...above].map(fromByteSequence);
}

function fromByteSequence(text: string): Uint8Array {
  if (!byteSequence.test(text)) throw new RefusedCertificate("malformed header");
  return new Uint8Array(Buffer.from(text.slice(1, -1), "base64"));
}

function fromPem(escaped: string): Uint8Array {
  let text: string;
  try {
    text = decodeURIComponent(escaped);
  } catch (cause) {
    throw new RefusedCertificate("malformed header", { cause });
  }
  const [, base64] = pem.exec(text) ?? [];
  if (base64 === undefined) throw new RefusedCertificate("malformed header");
  return new Uint8Array(Buffer.from(base64, "base64"));
}
