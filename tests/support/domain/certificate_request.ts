import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const newP256Key = (): KeyObject => generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;

/** A certificate signing request (PEM) by openssl, as of another client. It requests more than it may get. */
export function newCertificateRequest(key: KeyObject = newP256Key()): string {
  const directory = mkdtempSync(join(tmpdir(), "svc-csr-"));
  try {
    const path = join(directory, "key.pem");
    writeFileSync(path, key.export({ type: "pkcs8", format: "pem" }));
    const extensions = ["basicConstraints=critical,CA:TRUE", "subjectAltName=email:root@example.com"];
    const { stdout, stderr, success } = Bun.spawnSync([
      "openssl",
      "req",
      "-new",
      "-key",
      path,
      "-subj",
      "/CN=root@example.com",
      ...extensions.flatMap((one) => ["-addext", one]),
    ]);
    if (!success) throw new Error(`openssl req: ${stderr}`);
    return stdout.toString();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
