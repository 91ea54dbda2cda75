import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type JWTPayload,
  type JWTVerifyOptions,
  jwtVerify,
} from "jose";
import type { Clock } from "../../platform/clock.ts";
import { RateLimit } from "../../platform/rate_limit.ts";

/** All signatures with a public key, as from an issuer (RFC 7518, RFC 8037, RFC 9864). */
const algorithms = ["RS", "PS", "ES"]
  .flatMap((family) => ["256", "384", "512"].map((bits) => family + bits))
  .concat("EdDSA", "Ed25519");

/** Limits the requests for keys that invalid tokens cause, which anybody can send. */
const reloadsPerMinute = 12;
const clockToleranceSeconds = 30;

/** The keys cannot be fetched, which says nothing about the token. */
export class KeysUnavailable extends Error {}

/** Verifies tokens (JWT) with the public keys at an address. */
export class RemoteKeys {
  readonly #keys: ReturnType<typeof createRemoteJWKSet>;
  readonly #reloads: RateLimit;

  constructor(
    url: string,
    fetch: typeof globalThis.fetch,
    private readonly clock: Clock,
  ) {
    this.#keys = createRemoteJWKSet(new URL(url), { [customFetch]: fetch });
    this.#reloads = new RateLimit(clock, reloadsPerMinute, reloadsPerMinute);
  }

  /**
   * Verifies the signature, the times, and what `options` require. Before it refuses a signature, it reads the keys again,
   * because they may have been replaced.
   *
   * @throws KeysUnavailable; jose's error if the token is not valid
   */
  async verify(jwt: string, options: JWTVerifyOptions): Promise<JWTPayload> {
    const verify = () =>
      jwtVerify(jwt, this.#keys, {
        algorithms,
        clockTolerance: clockToleranceSeconds,
        currentDate: this.clock.now(),
        ...options,
      });
    try {
      const { payload } = await verify().catch(async (error: unknown) => {
        if (!needsOtherKeys(error) || this.#reloads.take("keys") > 0) throw error;
        await this.#keys.reload();
        return verify();
      });
      return payload;
    } catch (cause) {
      throw isAboutKeys(cause) ? new KeysUnavailable("The keys cannot be fetched", { cause }) : cause;
    }
  }
}

/** jose reads the keys again only for an unknown `kid`, and only half a minute after the last time. */
function needsOtherKeys(error: unknown): boolean {
  return error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWSSignatureVerificationFailed;
}

/** Whether the key set, rather than the token, failed: jose has no error class for that. */
function isAboutKeys(cause: unknown): boolean {
  if (!(cause instanceof errors.JOSEError)) return true;
  return ["ERR_JOSE_GENERIC", errors.JWKSTimeout.code, errors.JWKSInvalid.code].includes(cause.code);
}
