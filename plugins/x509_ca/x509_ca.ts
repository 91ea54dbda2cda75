import { X509Certificate } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import {
  authorityNamePattern,
  clientAuthority,
  longestAuthorityName,
  signingAuthority,
} from "../../core/authority/authority.ts";
import { certificateHandle } from "../../core/authority/revoked.ts";
import { defineBuiltin, type RoleFacts } from "../../core/plugin.ts";
import { after } from "../../platform/clock.ts";
import { InvalidInput, Refused } from "../../platform/errors.ts";

// Like an SSH certificate (plugins/ssh_ca), a client certificate ends when it expires, or when a server fetches the
// revocation list, which is built from the leases that have ended.

/** Allows for servers whose clocks are slow. */
const backdatedSeconds = 60;
/** `check` reports an authority that expires within this time. */
const warnSeconds = 90 * 24 * 3600;
/** Replaced with the user's name, an e-mail address, encoded for a URI. */
const userPlaceholder = "{user}";

const roleSchema = Type.Object({
  authority: Type.String({
    default: "default",
    maxLength: longestAuthorityName,
    // A certificate of clientAuthority would sign its holder in to svc, without appearing in `svc certificates list`.
    pattern: `^(?!${clientAuthority}$)${authorityNamePattern.slice(1)}`,
    description: `the authority that signs the certificates, except ${clientAuthority}; servers choose which authorities they trust`,
  }),
  uri: Type.Optional(
    Type.String({
      maxLength: 500,
      pattern: "^[a-z][a-z0-9+.-]*://[A-Za-z0-9.-]+(/[A-Za-z0-9._~%@{}/-]*)?$",
      description: `a URI for the subject alternative name; ${userPlaceholder} is the user's e-mail address`,
    }),
  ),
});

const targetOf = ({ settings }: RoleFacts) => settings as Static<typeof roleSchema>;

export default defineBuiltin({
  title: "X.509 certificates",
  slug: "x509-ca",
  version: "1.0.0",
  author: "svc",
  type: "credential",
  description: "Signs X.509 client certificates for users, for servers that trust the authority",
  configSchema: Type.Object({}),
  roleSchema,
  revocable: "expiry",
  publicKey: "x509",
  create: (_, { context }) => ({
    check: async ({ role }) => {
      const { authority, uri } = targetOf(role);
      const { permitsUri } = await import("../../platform/x509/certificate.ts");
      const signer = await signingAuthority(context, "x509", authority);
      if (uri !== undefined && !permitsUri(signer.public, uri))
        return [{ problem: `The authority ${authority} can sign only for URIs of SVC_DOMAIN` }];
      const end = new Date(new X509Certificate(signer.public).validTo);
      if (end > after(context.clock.now(), warnSeconds)) return [];
      return [
        {
          problem: `The authority ${authority} expires on ${end.toISOString().slice(0, 10)}`,
          fix: `svc access authority rotate x509 ${authority}`,
        },
      ];
    },
    issue: async ({ user, expiresAt, seconds, publicKey, role }) => {
      const { authority, uri } = targetOf(role);
      const { permitsEmail, signX509Certificate } = await import("../../platform/x509/certificate.ts");
      const key = await keyOf(publicKey);
      const signer = await signingAuthority(context, "x509", authority);
      if (!permitsEmail(signer.public, user))
        throw new Refused(`The authority ${authority} can sign only for addresses of SVC_DOMAIN`);
      const end = new Date(expiresAt);
      const { certificate, serial } = await signX509Certificate(
        {
          publicKey: key,
          commonName: user,
          email: user,
          ...(uri === undefined ? {} : { uri: uri.replaceAll(userPlaceholder, encodeURIComponent(user)) }),
          // The lease ends by the database's clock, which may differ from this machine's.
          notBefore: after(end, -(seconds + backdatedSeconds)),
          notAfter: end,
          crlUrl: `${context.config.publicUrl}/access/x509/${authority}/crl/${signer.id}`,
        },
        signer,
      );
      return {
        kind: "x509" as const,
        fields: { certificate, chain: signer.public },
        handle: certificateHandle(signer.id, serial),
      };
    },
    revoke: () => {},
  }),
});

/** @throws InvalidInput */
async function keyOf(publicKey: string | undefined): Promise<Buffer> {
  if (publicKey === undefined)
    throw new InvalidInput(
      "public_key",
      "A public key is required: use svc access get --format x509, or svc access run",
    );
  const { parseP256PublicKey } = await import("../../platform/x509/certificate.ts");
  return parseP256PublicKey(publicKey);
}
