import { generateKeyPairSync } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryDirectory } from "../database/backup.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** An access role that such a server can store. */
export const roleWithoutSecrets = {
  slug: "no-secrets",
  plugin: "oidc-token",
  settings: { audience: "https://vault.example.com" },
};

/** Starts a server with its signing key in a file, and without SVC_KEY_SECRET. */
export async function startWithoutKeySecret(): Promise<TestServer> {
  const directory = await temporaryDirectory();
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const tokenKeyFiles = join(directory.path, "key.pem");
  await writeFile(tokenKeyFiles, privateKey.export({ type: "pkcs8", format: "pem" }));
  const server = await startTestServer({
    keySecret: undefined,
    tokenKeyFiles,
    pluginCredential: "postgresql-role,oidc-token",
  });
  return {
    ...server,
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await directory[Symbol.asyncDispose]();
    },
  };
}
