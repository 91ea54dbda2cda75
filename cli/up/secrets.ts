import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/**
 * The secret that encrypts the signing keys in the database, made at the first start and kept beside it: with another
 * one the keys could not be read, and every token would end.
 */
export function keptKeySecret(dataDir: string): string {
  const file = join(dataDir, "key_secret");
  try {
    return readFileSync(file, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  const secret = newSecret();
  writeFileSync(file, `${secret}\n`, { mode: 0o600, flag: "wx" });
  return secret;
}

export function newSecret(): string {
  return randomBytes(36).toString("base64url");
}
