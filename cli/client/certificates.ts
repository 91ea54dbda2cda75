import { X509Certificate } from "node:crypto";
import type { Static } from "elysia";
import { NotFound } from "../../platform/errors.ts";
import type { certificateView } from "../../server/certificate/routes.ts";
import { UsageError } from "../errors.ts";
import type { Io } from "../io.ts";
import { ApiClient } from "./api_client.ts";

export type Certificate = Static<typeof certificateView>;

/**
 * Revokes certificates, those of this session last.
 *
 * @returns the serial numbers of those that were revoked
 * @throws NotFound for one that does not exist, after the others were revoked
 */
export async function revokeCertificates(
  io: Io,
  { serials, user }: { serials: readonly string[]; user?: string },
): Promise<string[]> {
  const wanted = serials.map((serial) => serial.toLowerCase().replaceAll(":", ""));
  for (const serial of wanted)
    if (!/^[0-9a-f]{1,40}$/.test(serial)) throw new UsageError(`"${serial}" is not a serial number`);
  return ApiClient.within(io, async (client) => {
    if (user !== undefined) {
      const valid = await client.list<Certificate>("/certificates/", { user, valid: "true" });
      wanted.push(...valid.map(({ serial }) => serial));
    }
    const missing: string[] = [];
    const revoked: string[] = [];
    const revoke = (serial: string) =>
      client.call("DELETE", `/certificates/${serial}`).then(
        () => revoked.push(serial),
        (error: unknown) => {
          if (!(error instanceof NotFound)) throw error;
          missing.push(serial);
        },
      );
    // Revoking one certificate ends all of its sign-in. After those of our own, the server refuses us.
    const ours = await certificatesOfSession(client);
    const last = [...new Set(wanted)].filter((serial) => ours.has(serial));
    for (const serial of new Set(wanted)) if (!ours.has(serial)) await revoke(serial);
    if (last[0] !== undefined) {
      await revoke(last[0]);
      revoked.push(...last.slice(1));
    }
    if (missing.length > 0) throw new NotFound(`There is no certificate ${missing.join(", ")}`);
    return revoked;
  });
}

/** The valid certificates of the sign-in that this session uses, if it uses a certificate. */
async function certificatesOfSession(client: ApiClient): Promise<Set<string>> {
  const { endpoint, user } = client.session;
  if (endpoint.tls === undefined) return new Set();
  const own = new X509Certificate(endpoint.tls.cert).serialNumber.toLowerCase();
  const valid = await client.list<Certificate>("/certificates/", { user, valid: "true" });
  const signIn = valid.find(({ serial }) => serial === own)?.sign_in_expires_at;
  return new Set(
    valid.filter(({ sign_in_expires_at }) => sign_in_expires_at === signIn).map(({ serial }) => serial),
  );
}
