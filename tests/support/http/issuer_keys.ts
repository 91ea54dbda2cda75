import { exportJWK, generateKeyPair, importJWK, type JWK } from "jose";

/** Generating one takes 50 ms of processor time, more than a server needs to start. */
const algorithm = "RS256";

/**
 * One of the two keys of all test issuers, generated when it is first used. Files that run in this process, each with modules
 * of its own (--isolate), find it in the environment.
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
