import { readFile } from "node:fs/promises";
import { gt, isNull, or, sql } from "drizzle-orm";
import {
  type CryptoKey,
  calculateJwkThumbprint,
  exportJWK,
  generateKeyPair,
  importJWK,
  importPKCS8,
  type JWK,
} from "jose";
import { signingKey } from "../../../drizzle/schema/index.ts";
import { ConfigurationError } from "../../../platform/errors.ts";
import { seal, unseal } from "../../../platform/sealed.ts";
import { whyUnreadable } from "../../../platform/unreadable.ts";
import { audit } from "../../audit.ts";
import type { Context } from "../../context.ts";
import { type Algorithm, planRotation } from "./rotation.ts";

export interface SigningKey {
  kid: string;
  algorithm: Algorithm;
  privateKey: CryptoKey;
}

export interface VerificationKey {
  algorithm: Algorithm;
  publicKey: CryptoKey;
  publicJwk: JWK;
}

/** What a process knows of the keys, and when it read them. */
interface Loaded {
  at: number;
  signing: SigningKey;
  verification: Map<string, VerificationKey>;
}

const freshSeconds = 60;
const unknownKeySeconds = 5;
/** Serialises the creation of a first or next key across all processes. */
const rotationLock = 7_798_564;

/**
 * The keys that sign access tokens. They are in the database, encrypted with SVC_KEY_SECRET and replaced every
 * SVC_KEY_ROTATION days, or given as files (SVC_TOKEN_KEY_FILES). Each process reads them again once a minute, and when
 * it encounters an unknown key.
 */
export class Keys {
  #loaded: Loaded | undefined;
  #loading: Promise<Loaded> | undefined;

  constructor(private readonly context: Context) {
    const { keySecret, tokenKeyFiles } = context.config;
    if (!keySecret && !tokenKeyFiles) {
      throw new ConfigurationError([
        "SVC_KEY_SECRET: needed to keep signing keys in the database (or name key files in SVC_TOKEN_KEY_FILES)",
      ]);
    }
  }

  /** The current signing key. */
  async signing(): Promise<SigningKey> {
    return (await this.#fresh(freshSeconds)).signing;
  }

  /** The key with that id. Undefined if there is none, or no longer. */
  async verification(kid: string): Promise<VerificationKey | undefined> {
    const known = (await this.#fresh(freshSeconds)).verification.get(kid);
    // Another process may have just rotated. A stream of invented ids must not become a stream of queries.
    return known ?? (await this.#fresh(unknownKeySeconds)).verification.get(kid);
  }

  /** RFC 7517: every key that may have signed a valid token, and the one that will sign next. */
  async jwks(): Promise<{ keys: JWK[] }> {
    const { verification } = await this.#fresh(freshSeconds);
    return { keys: [...verification.values()].map((key) => key.publicJwk) };
  }

  async #fresh(seconds: number): Promise<Loaded> {
    const now = this.context.clock.now().getTime();
    if (this.#loaded && Math.abs(now - this.#loaded.at) < seconds * 1000) return this.#loaded;
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    this.#loaded = await this.#loading;
    return this.#loaded;
  }

  #load(): Promise<Loaded> {
    return this.context.config.tokenKeyFiles
      ? this.#loadFiles(this.context.config.tokenKeyFiles)
      : this.#loadRows();
  }

  async #loadFiles(files: string): Promise<Loaded> {
    const verification = new Map<string, VerificationKey>();
    let signing: SigningKey | undefined;
    for (const file of files.split(",").map((name) => name.trim())) {
      const { algorithm, privateKey, publicJwk } = await readKeyFile(file);
      const kid = publicJwk.kid as string;
      signing ??= { kid, algorithm, privateKey };
      verification.set(kid, await verificationKey(publicJwk, algorithm));
    }
    return { at: this.context.clock.now().getTime(), signing: signing!, verification };
  }

  async #loadRows(): Promise<Loaded> {
    const { db, clock, config } = this.context;
    const now = clock.now();
    const good = or(isNull(signingKey.expiresAt), gt(signingKey.expiresAt, now));
    const policy = {
      algorithm: config.tokenAlgorithm,
      rotationDays: config.keyRotation,
      tokenLifetime: config.tokenLifetime,
    };
    let rows = await db.select().from(signingKey).where(good);
    if (planRotation(rows, policy, now).create) {
      rows = await db.transaction(async (tx) => {
        await tx.execute(sql`select pg_advisory_xact_lock(${rotationLock})`);
        const locked = await tx.select().from(signingKey).where(good);
        // The time after waiting for the lock: with an earlier one, a key that was just created would look like a
        // future one.
        const made = clock.now();
        const { create } = planRotation(locked, policy, made);
        if (create) {
          const key = await newKey(config.tokenAlgorithm, config.keySecret!);
          await tx.insert(signingKey).values({ ...key, createdAt: made, activeAt: create.activeAt });
          await tx
            .update(signingKey)
            .set({ expiresAt: create.othersExpireAt })
            .where(sql`${signingKey.kid} <> ${key.kid} and ${signingKey.expiresAt} is null`);
          await audit(tx, { at: made, actor: "system", action: "key.created", subject: key.kid });
        }
        return tx.select().from(signingKey).where(good);
      });
    }
    const { signing } = planRotation(rows, policy, now);
    const current = rows.find((row) => row.kid === signing)!;
    const verification = new Map<string, VerificationKey>();
    for (const row of rows) {
      verification.set(row.kid, await verificationKey(row.publicJwk as JWK, row.algorithm as Algorithm));
    }
    const algorithm = current.algorithm as Algorithm;
    const privateJwk = JSON.parse(openSigningKey(current, config.keySecret!)) as JWK;
    const privateKey = (await importJWK(privateJwk, algorithm)) as CryptoKey;
    return { at: now.getTime(), signing: { kid: current.kid, algorithm, privateKey }, verification };
  }
}

async function verificationKey(publicJwk: JWK, algorithm: Algorithm): Promise<VerificationKey> {
  return { algorithm, publicJwk, publicKey: (await importJWK(publicJwk, algorithm)) as CryptoKey };
}

async function readKeyFile(file: string) {
  let pem: string;
  try {
    pem = await readFile(file, "utf8");
  } catch (cause) {
    throw new ConfigurationError([`SVC_TOKEN_KEY_FILES: cannot read ${file}: ${whyUnreadable(cause)}`], {
      cause,
    });
  }
  for (const algorithm of ["ES256", "Ed25519"] as const) {
    try {
      const privateKey = await importPKCS8(pem, algorithm, { extractable: true });
      return { algorithm, privateKey, publicJwk: await publicPart(privateKey, algorithm) };
    } catch {
      // Another algorithm: try the next one, or fail below.
    }
  }
  throw new ConfigurationError([
    `SVC_TOKEN_KEY_FILES: ${file} is not a P-256 or Ed25519 private key in PKCS #8 PEM`,
  ]);
}

async function newKey(algorithm: Algorithm, secret: string) {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const publicJwk = await publicPart(privateKey, algorithm);
  const kid = publicJwk.kid as string;
  return {
    kid,
    algorithm,
    publicJwk,
    privateKey: seal(JSON.stringify(await exportJWK(privateKey)), sealOf(secret, kid)),
  };
}

async function publicPart(privateKey: CryptoKey, algorithm: Algorithm): Promise<JWK> {
  const { d: _private, key_ops: _ops, ext: _ext, ...jwk } = await exportJWK(privateKey);
  // RFC 7638: the id is derived from the key, so two processes cannot give one key two ids.
  return { ...jwk, kid: await calculateJwkThumbprint(jwk), alg: algorithm, use: "sig" };
}

/** The private JWK of a row, as JSON. @throws ConfigurationError when it was encrypted with another secret */
export function openSigningKey(
  { kid, privateKey }: Pick<typeof signingKey.$inferSelect, "kid" | "privateKey">,
  secret: string,
): string {
  return unseal(privateKey, sealOf(secret, kid), `signing key ${kid}`);
}

const sealOf = (secret: string, kid: string) => ({ secret, purpose: "signing key encryption", name: kid });
