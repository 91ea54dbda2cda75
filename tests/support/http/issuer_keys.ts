import { exportJWK, generateKeyPair, importJWK, type JWK } from "jose";

/** Generating a key takes 50 ms of processor time, which is more than starting a server. */
const algorithm = "RS256";

/**
 * One of the two keys of all test issuers, generated on first use. It is stored in the environment, because test files in
 * this process have separate modules (--isolate).
 */
export async function issuerKey(
  name: "own" | "stranger",
): Promise<{ privateKey: CryptoKey; publicJwk: JWK }> {
  const variable = `SVC_TEST_ISSUER_KEY_${name.toUpperCase()}`;
  process.env[variable] ??= await generate();
  const jwk = JSON.parse(process.env[variable]) as JWK;
  const { kty, n, e } = jwk;
  return { privateKey: (await importJWK(jwk, algorithm)) as CryptoKey, publicJwk: { kty, n, e } as JWK };
}

async function generate(): Promise<string> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  return JSON.stringify(await exportJWK(privateKey));
}
