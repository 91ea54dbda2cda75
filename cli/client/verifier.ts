/** The secret that binds a sign-in to this process, and what the server may know of it (RFC 7636, S256). */
export interface Verifier {
  verifier: string;
  challenge: string;
}

export function newVerifier(): Verifier {
  const verifier = Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  return { verifier, challenge: new Bun.CryptoHasher("sha256").update(verifier).digest("base64url") };
}
