import { afterAll, beforeAll, beforeEach, expect } from "bun:test";
import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Fetch, Io, Keychain } from "../../../cli/io.ts";
import { type MtlsServer, startMtlsServer } from "../http/mtls.ts";
import { decide, type TestServer } from "../http/server.ts";
import { type CliUser, cliUser } from "./incident_cli.ts";

/** A server with a port for client certificates. */
export interface Certifying {
  mtls: MtlsServer;
  server: TestServer;
  /** The certificate of its authority. */
  ca: string;
}

/**
 * A browser in which the user approves. Its last page may still be loading when the sign-in, the test and the server have
 * ended.
 */
export const approvingBrowser: Io["openBrowser"] = (challengeUrl) => ({
  failed: decide({ challengeUrl } as never, "approve").then(() => new Promise(() => {}), String),
});

/** Starts one for a whole file. The people of the file sign in there with `svc login --certificate`. */
export function useCertificates(take: (given: Certifying) => void) {
  let given: Certifying;
  /** The addresses that were asked. */
  const asked: string[] = [];
  beforeAll(async () => {
    const mtls = await startMtlsServer();
    given = { mtls, server: mtls.server, ca: readFileSync(mtls.authorityFile, "utf8") };
    take(given);
  });
  afterAll(() => given.mtls[Symbol.asyncDispose]());
  beforeEach(() => {
    asked.length = 0;
  });

  /** A person who has not signed in yet. */
  async function somebody(
    of = given.server,
  ): Promise<CliUser & Pick<Io, "fetch" | "keychain" | "openBrowser">> {
    const user = await cliUser(of, "alice@example.com", ["oncall"]);
    delete user.env.SVC_TOKEN;
    const recorded: Fetch = (url, init) => {
      asked.push(`${init.method ?? "GET"} ${url}`);
      return fetch(url, init.tls ? { ...init, tls: { ...init.tls, ca: given.ca } } : init);
    };
    const secrets = new Map<string, string>();
    const keychain: Keychain = {
      get: async (name) => secrets.get(name) ?? null,
      set: async (name, value) => void secrets.set(name, value),
      delete: async (name) => void secrets.delete(name),
    };
    const person = user.with({
      fetch: recorded,
      keychain,
      openBrowser: approvingBrowser,
      sleep: () => Bun.sleep(20),
    });
    return { ...person, fetch: recorded, keychain, openBrowser: approvingBrowser };
  }

  /** Signs in with a certificate. */
  const login = (user: CliUser, ...more: string[]) =>
    user.svc("login", "alice@example.com", "--browser", "--certificate", "--json", ...more);

  /** A person who has signed in with one. */
  async function certified(...more: string[]) {
    const user = await somebody();
    const { code, stdout, stderr } = await login(user, ...more);
    expect([code, code === 0 ? "" : stderr]).toEqual([0, ""]);
    return { ...user, files: JSON.parse(stdout).certificate as { certificate: string; key: string } };
  }

  return { asked, somebody, login, certified };
}

/** The serial number of a certificate's file, as in lists. */
export const serialIn = (path: string) => new X509Certificate(readFileSync(path)).serialNumber.toLowerCase();

/** The user that a command with the certificate acts as, or its exit code and error. */
export const whoami = async (user: CliUser) => {
  const { code, stdout, stderr } = await user.svc("--certificate", "whoami", "--json");
  return code === 0 ? JSON.parse(stdout).user : [code, stderr];
};
