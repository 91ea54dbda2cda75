import { type Static, Type } from "@sinclair/typebox";
import { databaseNow } from "../../core/database_clock.ts";
import { federationIssuer } from "../../core/federation/issuer.ts";
import {
  audiencePattern,
  federationKeys,
  longestFederationSeconds,
  signFederationToken,
  subjectSetting,
} from "../../core/federation/token.ts";
import { type BuiltinDeps, type CredentialProblem, defineBuiltin } from "../../core/plugin.ts";
import { type Asked, awsCredentials } from "./credential.ts";
import { type AwsTarget, awsRoleSettings, sessionName, settingProblems, stsAddress } from "./role.ts";
import { assumeRole } from "./sts.ts";

// AWS trusts this server as an OpenID provider. STS exchanges a token about the user, which is sent only to STS, for a
// session of a role. svc stores no AWS secret.

const { roleArn, accountName, ...optional } = awsRoleSettings;

const roleSchema = Type.Object({
  roleArn,
  accountName,
  audience: Type.String({
    default: "sts.amazonaws.com",
    maxLength: 255,
    pattern: audiencePattern,
    description: "an audience of the OpenID provider in AWS",
  }),
  subject: subjectSetting,
  ...optional,
});

type Target = Static<typeof roleSchema>;

export default defineBuiltin({
  title: "AWS with web identity",
  slug: "aws-web-identity",
  version: "1.0.0",
  author: "svc",
  type: "credential",
  description: "Issues sessions of an AWS role that trusts this server as an OpenID provider",
  configSchema: Type.Object({}),
  roleSchema,
  revocable: "expiry",
  create: (_, deps) =>
    awsCredentials<Target>({
      problemsOf: async (target) => [
        ...settingProblems(target),
        ...(await issuerProblems(deps.context, target)),
      ],
      open: (target, asked) => exchange(deps, target, asked),
      fixOf: (target, slug) => trustOf(federationIssuer(deps.context.config), slug, target),
    }),
});

async function exchange(
  { fetch, context }: BuiltinDeps,
  { audience, subject, ...target }: Target,
  { user, role, incident, leaseId, seconds, at, signal }: Asked,
) {
  const issuer = federationIssuer(context.config);
  const signed = await signFederationToken(context, {
    audience,
    subject,
    user,
    incident,
    leaseId,
    role,
    issuedAt: at ?? (await databaseNow(context.db)),
    seconds: longestFederationSeconds,
  });
  return await assumeRole(
    { fetch },
    {
      address: stsAddress(target),
      action: "AssumeRoleWithWebIdentity",
      signal,
      parameters: {
        RoleArn: target.roleArn,
        RoleSessionName: sessionName(user),
        DurationSeconds: String(seconds),
        Policy: target.sessionPolicy,
        WebIdentityToken: signed.token,
      },
      faults: {
        AccessDenied: `${signed.subject} may not assume this AWS role: check its trust policy`,
        InvalidIdentityToken: `AWS rejected our token: check that the account has the OpenID provider ${issuer} with the audience ${audience}`,
        IDPRejectedClaim: `AWS rejected a claim of our token: check that its OpenID provider has the audience ${audience}`,
        IDPCommunicationError: `AWS cannot fetch our keys from ${issuer}/.well-known/`,
        ExpiredTokenException: "AWS rejected our token as expired: check the clock of the database",
      },
    },
  );
}

/** The problems that prevent AWS from accepting our tokens. */
async function issuerProblems(
  context: BuiltinDeps["context"],
  { endpoint }: AwsTarget,
): Promise<CredentialProblem[]> {
  const problems: CredentialProblem[] = [];
  const issuer = federationIssuer(context.config);
  // A stand-in for AWS may accept other issuers.
  if (endpoint === undefined && !issuer.startsWith("https:"))
    problems.push({
      problem: `AWS requires an https address for the issuer, not ${issuer}`,
      fix: "SVC_FEDERATION_ISSUER=https://...",
    });
  const { algorithm } = await federationKeys(context).signing();
  if (algorithm !== "ES256")
    problems.push({
      problem: `AWS does not accept tokens signed with ${algorithm}`,
      fix: "SVC_TOKEN_ALGORITHM=ES256",
    });
  return problems;
}

/** The trust policy that admits every user of the access role. */
function trustOf(issuer: string, slug: string, { roleArn, audience, subject }: Target): string {
  const [, partition, , , account] = roleArn.split(":");
  const name = issuer.replace(/^https?:\/\//, "");
  const pattern = subject.replaceAll("{role}", slug).replaceAll(/\{(user|incident)\}/g, "*");
  return JSON.stringify({
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Action: "sts:AssumeRoleWithWebIdentity",
        Principal: { Federated: `arn:${partition}:iam::${account}:oidc-provider/${name}` },
        Condition: {
          StringEquals: { [`${name}:aud`]: audience },
          StringLike: { [`${name}:sub`]: pattern },
        },
      },
    ],
  });
}
