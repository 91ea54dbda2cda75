import { Type } from "@sinclair/typebox";
import { databaseNow } from "../../core/access/request.ts";
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
import type { BuiltinDeps, LeaseFacts } from "../../core/plugin.ts";
import { defineBuiltin } from "../../core/plugin.ts";
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

// AWS trusts this server as an OpenID provider: a token about the user, which never leaves for anywhere but STS, becomes a
// session of a role. There is no secret of AWS here.

const { roleArn, accountName, ...optional } = awsRoleSettings;

const roleSchema = Type.Object({
  roleArn,
  accountName,
  audience: Type.String({
    ...{ default: "sts.amazonaws.com", maxLength: 255, pattern: audiencePattern },
    description: "the audience that the OpenID provider in AWS knows",
  }),
  subject: Type.String({
    ...{ default: defaultSubject, maxLength: 500, pattern: subjectPattern, description: subjectAbout },
  }),
  ...optional,
});

/** An issuer may have an address of any length. */
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
  /** By the clock that leases end by. */
  at: Date;
  signal: AbortSignal;
}

export default defineBuiltin({
  ...{ title: "AWS by web identity", slug: "aws-web-identity", version: "1.0.0", author: "svc" },
  type: "credential",
  description: "A session of an AWS role that trusts this server as an OpenID provider",
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
    revoke: (_: LeaseFacts) => {},
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
    ...{ audience, subject, user, incident, leaseId, role: slug, issuedAt: at },
    seconds: longestFederationSeconds,
  });
  return await assumeRole(
    { fetch },
    {
      ...{ address: stsAddress(target), action: "AssumeRoleWithWebIdentity", signal },
      parameters: {
        ...{ RoleArn: target.roleArn, RoleSessionName: sessionName(user), DurationSeconds: String(seconds) },
        ...{ Policy: target.sessionPolicy, WebIdentityToken: signed.token },
      },
      faults: {
        AccessDenied: `AWS does not let ${signed.subject} assume this role: see its trust policy`,
        InvalidIdentityToken: `AWS does not accept our token: has its account the OpenID provider ${issuer}, with the audience ${audience}?`,
        IDPRejectedClaim: `AWS rejects a claim of our token: does its OpenID provider know the audience ${audience}?`,
        IDPCommunicationError: `AWS cannot fetch our keys from ${issuer}/.well-known/`,
        ExpiredTokenException: "To AWS our token has expired: is the clock of the database right?",
      },
    },
  );
}

/** What keeps AWS from ever accepting a token of ours. */
async function issuerProblems(
  context: BuiltinDeps["context"],
  { endpoint }: AwsTarget,
): Promise<{ problem: string; fix?: string }[]> {
  const problems: { problem: string; fix?: string }[] = [];
  const issuer = federationIssuer(context.config);
  // A stand-in for AWS may take another.
  if (endpoint === undefined && !issuer.startsWith("https:"))
    problems.push({
      problem: `AWS wants an https address for an issuer, and not ${issuer}`,
      fix: "SVC_FEDERATION_ISSUER=https://...",
    });
  const { algorithm } = await federationKeys(context).signing();
  if (algorithm !== "ES256")
    problems.push({
      problem: `AWS takes no tokens that are signed with ${algorithm}`,
      fix: "SVC_TOKEN_ALGORITHM=ES256",
    });
  return problems;
}

/** Also whether AWS really gives a session, which is dropped. */
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

/** The trust policy that lets everybody have the role who may have the access role. */
function trustOf(issuer: string, slug: string, { roleArn, audience, subject }: Target): string {
  const [, partition, , , account] = roleArn.split(":");
  const name = issuer.replace(/^https?:\/\//, "");
  const pattern = subject.replaceAll("{role}", slug).replaceAll(/\{(user|incident)\}/g, "*");
  return JSON.stringify({
    Version: "2012-10-17",
    Statement: [
      {
        ...{ Effect: "Allow", Action: "sts:AssumeRoleWithWebIdentity" },
        Principal: { Federated: `arn:${partition}:iam::${account}:oidc-provider/${name}` },
        Condition: {
          StringEquals: { [`${name}:aud`]: audience },
          StringLike: { [`${name}:sub`]: pattern },
        },
      },
    ],
  });
}
