import { type Static, Type } from "@sinclair/typebox";
import {
  authorityNamePattern,
  longestAuthorityName,
  signingAuthority,
  sshBlobOf,
} from "../../core/authority/authority.ts";
import { certificateHandle } from "../../core/authority/revoked.ts";
import { defineBuiltin, type RoleFacts } from "../../core/plugin.ts";
import { after } from "../../platform/clock.ts";
import { InvalidInput } from "../../platform/errors.ts";
import { signSshCertificate, sshExtensions } from "../../platform/ssh/certificate.ts";
import { parseSshPublicKey } from "../../platform/ssh/public_key.ts";

// A certificate ends when it expires, or when a host fetches the revocation list, which the server builds from the leases
// that have ended (core/authority). So `revoke` does nothing, and the handle identifies the signing key.

/** Allows for hosts whose clocks are slow. */
const backdatedSeconds = 60;
/** Replaced in principals with the user's name, which is an e-mail address. */
const userPlaceholder = "{user}";

const listPattern = (element: string) => `^${element}( *, *${element})*$`;

const roleSchema = Type.Object({
  authority: Type.String({
    default: "default",
    maxLength: longestAuthorityName,
    pattern: authorityNamePattern,
    description: "the authority that signs the certificates; hosts choose which authorities they trust",
  }),
  principals: Type.String({
    maxLength: 2000,
    pattern: listPattern("[^,\\s]+"),
    description: `the principals of a certificate, comma-separated; ${userPlaceholder} is the user's e-mail address`,
  }),
  extensions: Type.String({
    default: "permit-pty",
    maxLength: 500,
    pattern: `^$|${listPattern(`(${sshExtensions.join("|")})`)}`,
    description: `the extensions of a certificate, comma-separated: ${sshExtensions.join(", ")}`,
  }),
  sourceAddress: Type.Optional(
    Type.String({
      maxLength: 2000,
      format: "networks",
      description:
        "the networks that certificates are accepted from, comma-separated, such as 192.0.2.0/24; bits after the prefix are zero",
    }),
  ),
  forceCommand: Type.Optional(
    Type.String({ minLength: 1, maxLength: 2000, description: "the only command that users can run" }),
  ),
  host: Type.Optional(
    Type.String({
      maxLength: 255,
      pattern: "^[A-Za-z0-9:._-]+$",
      description: "a host to print in the ssh command",
    }),
  ),
  user: Type.Optional(
    Type.String({
      maxLength: 64,
      pattern: "^[A-Za-z0-9._][A-Za-z0-9._-]*$",
      description: "the account on that host",
    }),
  ),
});

function targetOf({ settings }: RoleFacts) {
  const { principals, extensions, sourceAddress, ...rest } = settings as Static<typeof roleSchema>;
  return {
    ...rest,
    principals: listOf(principals),
    extensions: listOf(extensions),
    sourceAddress: listOf(sourceAddress ?? ""),
  };
}

const listOf = (text: string) => text.split(",").flatMap((one) => one.trim() || []);

export default defineBuiltin({
  title: "SSH certificates",
  slug: "ssh-ca",
  version: "1.0.0",
  author: "svc",
  type: "credential",
  description: "Signs users' SSH keys, for hosts that trust the authority",
  configSchema: Type.Object({}),
  roleSchema,
  revocable: "expiry",
  publicKey: "ssh",
  create: (_, { context }) => ({
    check: async ({ role }) => {
      await signingAuthority(context, "ssh", targetOf(role).authority);
      return [];
    },
    issue: async (call) => {
      const { leaseId, user, incident, expiresAt, seconds, publicKey, role } = call;
      const target = targetOf(role);
      const key = keyOf(publicKey);
      const signer = await signingAuthority(context, "ssh", target.authority);
      // A function, because in a text `$'` of a user name would be replaced, too.
      const principals = target.principals.map((principal) =>
        principal.replaceAll(userPlaceholder, () => user),
      );
      const end = new Date(expiresAt);
      const certificate = signSshCertificate(
        {
          key,
          serial: leaseId,
          principals,
          extensions: target.extensions,
          keyId: [user, role.slug, `lease/${leaseId}`, ...(incident ? [incident] : [])].join(" "),
          // The lease ends by the database's clock, which may differ from this machine's.
          validAfter: after(end, -(seconds + backdatedSeconds)),
          validBefore: end,
          criticalOptions: {
            ...(target.sourceAddress.length > 0 ? { "source-address": target.sourceAddress.join(",") } : {}),
            ...(target.forceCommand ? { "force-command": target.forceCommand } : {}),
          },
        },
        { privateKey: signer.privateKey, blob: sshBlobOf(signer) },
      );
      const { host, user: account } = target;
      return {
        kind: "ssh" as const,
        fields: {
          certificate,
          principals: principals.join(","),
          ...(host ? { host } : {}),
          ...(account ? { user: account } : {}),
        },
        handle: certificateHandle(signer.id),
      };
    },
    revoke: () => {},
  }),
});

/** @throws InvalidInput */
function keyOf(publicKey: string | undefined) {
  if (publicKey === undefined)
    throw new InvalidInput(
      "public_key",
      "A public key is required: use svc access get --format ssh, or svc access run",
    );
  return parseSshPublicKey(publicKey);
}
