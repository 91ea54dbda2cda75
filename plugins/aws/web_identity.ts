import { Type } from "@sinclair/typebox";
import { databaseNow } from "../../core/database_clock.ts";
import { federationIssuer } from "../../core/federation/issuer.ts";
import {
  audiencePattern,
  defaultSubject,
  federationKeys,
  longestFederationSeconds,
  signFederationToken,
  subjectAbout,
  subjectPattern,
} from "../../core/federation/token.ts";
import { type BuiltinDeps, type CredentialProblem, defineBuiltin } from "../../core/plugin.ts";
import { after } from "../../platform/clock.ts";
import { Refused, SvcError } from "../../platform/errors.ts";
import { awsCredential } from "./credential.ts";
import {
  type AwsTarget,
  awsRoleSettings,
  sessionName,
  sessionSeconds,
  settingProblems,
  shortestSeconds,
  stsAddress,
  targetOf,
} from "./role.ts";
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
  subject: Type.String({
    default: defaultSubject,
    maxLength: 500,
    pattern: subjectPattern,
    description: subjectAbout,
  }),
  ...optional,
});

/** Limits the length of problems, because the issuer's address may be long. */
const longestProblem = 500;

interface Target extends AwsTarget {
  audience: string;
  subject: string;
}

interface Asked {
  user: string;
  incident?: string;
  leaseId: number;
  seconds: number;
  /** By the database's clock. */
  at: Date;
  signal: AbortSignal;
}

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
  create: (_, deps) => ({
    check: ({ role, signal }) => check(deps, role.slug, targetOf(role), signal),
    issue: async ({ leaseId, user, incident, expiresAt, seconds, role, signal }) => {
      const target = targetOf<Target>(role);
      const at = after(new Date(expiresAt), -seconds);
      const asked = { leaseId, user, incident, seconds: sessionSeconds(seconds), at, signal };
      return awsCredential(target, await exchange(deps, role.slug, target, asked));
    },
    revoke: () => {},
  }),
});

async function exchange(
  { fetch, context }: BuiltinDeps,
  slug: string,
  { audience, subject, ...target }: Target,
  { user, incident, leaseId, seconds, at, signal }: Asked,
) {
  const [problem] = [...settingProblems(target), ...(await issuerProblems(context, target))];
  if (problem) throw new Refused(problem.problem);
  const issuer = federationIssuer(context.config);
  const signed = await signFederationToken(context, {
    audience,
    subject,
    user,
    incident,
    leaseId,
    role: slug,
    issuedAt: at,
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

/** Also gets a session from AWS, and discards it. */
async function check(deps: BuiltinDeps, slug: string, target: Target, signal: AbortSignal) {
  const problems = [...settingProblems(target), ...(await issuerProblems(deps.context, target))];
  if (problems.length > 0) return problems;
  const somebody = { user: "svc-check", incident: "INC-0", leaseId: 0 };
  const asked = { ...somebody, seconds: shortestSeconds, at: await databaseNow(deps.context.db), signal };
  try {
    await exchange(deps, slug, target, asked);
    return [];
  } catch (error) {
    if (!(error instanceof SvcError)) throw error;
    return [
      {
        problem: error.detail.slice(0, longestProblem),
        fix: trustOf(federationIssuer(deps.context.config), slug, target),
      },
    ];
  }
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
