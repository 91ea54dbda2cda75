import { hkdfSync } from "node:crypto";

/**
 * Identifies this installation at its targets. It is derived from SVC_KEY_SECRET, so it survives the restore of a backup,
 * while a copy of the database with a different secret counts as another installation.
 */
export function installationId(keySecret = ""): string {
  return Buffer.from(hkdfSync("sha256", keySecret, "svc", "installation", 6)).toString("hex");
}
