import { afterAll, beforeAll, expect } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Context } from "../../../core/context.ts";
import { createLog } from "../../../platform/log.ts";
import { newCertificateRequest } from "../domain/certificate_request.ts";
import { personOf } from "./people.ts";
import { startTestServer, type TestServer } from "./server.ts";

/** The setup of tests of client certificates. The server has the real time, because openssl has it. */
export interface CertificateServer {
  server: TestServer;
  context: Context;
  /** Writes a file for openssl, and returns its path. */
  file(content: string | Uint8Array): Promise<string>;
  newUser(): string;
  issue: ReturnType<typeof issuing>;
}

/** Starts a server that issues client certificates for a whole file, and passes it to `take`. */
export function useCertificateServer(take: (given: CertificateServer) => void): void {
  let server: TestServer;
  let directory: string;
  let made = 0;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "svc-certificates-"));
    server = await startTestServer({
      mtlsUrl: "https://svc.example.com:8443",
      pluginCredential: "x509-ca",
    });
    server.clock.advance((Date.now() - server.clock.now().getTime()) / 1000);
    const file = async (content: string | Uint8Array) => {
      const path = join(directory, `file-${++made}`);
      await writeFile(path, content);
      return path;
    };
    const newUser = () => `user-${++made}@example.com`;
    const context = { ...server, log: createLog("fatal") };
    take({ server, context, file, newUser, issue: issuing(server, newUser) });
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await rm(directory, { recursive: true, force: true });
  });
}

/** Signs a user in and issues a certificate. */
const issuing =
  (server: TestServer, newUser: () => string) =>
  async (user = newUser(), groups: string[] = []) => {
    const person = await personOf(server, user, groups);
    const { http, body } = await person.call("POST", "/certificates/", { csr: newCertificateRequest() });
    expect([http, body.detail]).toEqual([201, undefined]);
    return { person, ...body };
  };
