import { type Static, Type } from "@sinclair/typebox";
import {
  audiencePattern,
  federationKeys,
  longestFederationSeconds,
  signFederationToken,
  subjectSetting,
} from "../../core/federation/token.ts";
import { defineBuiltin } from "../../core/plugin.ts";
import { after } from "../../platform/clock.ts";

const roleSchema = Type.Object({
  audience: Type.String({
    maxLength: 500,
    pattern: audiencePattern,
    description: "the audience of the token (`aud`), as the service requires it; not svc",
  }),
  subject: subjectSetting,
  lifetime: Type.Integer({
    default: longestFederationSeconds,
    minimum: 60,
    maximum: longestFederationSeconds,
    description: "how long the token is valid, in seconds",
  }),
});

/** Google Cloud, Vault and others exchange such a token for one of theirs, which ends by their rules. */
export default defineBuiltin({
  title: "OpenID Connect tokens",
  slug: "oidc-token",
  version: "1.0.0",
  author: "svc",
  type: "credential",
  description:
    "Issues short-lived tokens about the user, for a service that trusts this server as an OpenID provider",
  configSchema: Type.Object({}),
  roleSchema,
  revocable: "expiry",
  create: (_, { context }) => ({
    check: async () => {
      await federationKeys(context).signing();
      return [];
    },
    issue: async ({ leaseId, user, incident, expiresAt, seconds, role }) => {
      const { audience, subject, lifetime } = role.settings as Static<typeof roleSchema>;
      const signed = await signFederationToken(context, {
        audience,
        subject,
        user,
        incident,
        leaseId,
        role: role.slug,
        // Leases end by the database's clock, which may differ from this machine's.
        issuedAt: after(new Date(expiresAt), -seconds),
        seconds: Math.min(lifetime, seconds),
      });
      const end = signed.expiresAt.toISOString();
      return {
        kind: "token" as const,
        fields: { token: signed.token, audience, subject: signed.subject, expiration: end },
        expiresAt: end,
      };
    },
    revoke: () => {},
  }),
});
