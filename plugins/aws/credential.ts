import type { CredentialPlugin, CredentialProblem } from "../../core/plugin.ts";
import { after } from "../../platform/clock.ts";
import { Refused, SvcError } from "../../platform/errors.ts";
import type { AwsSession } from "./answer.ts";
import { type AwsTarget, sessionSeconds, shortestSeconds } from "./role.ts";

/** Limits the length of problems, because the issuer's address may be long. */
const longestProblem = 500;

/** A session to get. */
export interface Asked {
  user: string;
  /** The slug of the access role. */
  role: string;
  incident?: string;
  leaseId: number;
  seconds: number;
  /** When it begins, by the database's clock. Now by default. */
  at?: Date;
  signal: AbortSignal;
}

/** How a plugin gets sessions of an AWS role. */
export interface Sessions<T> {
  /** The problems that are visible without calling AWS. */
  problemsOf(target: T): CredentialProblem[] | Promise<CredentialProblem[]>;
  open(target: T, asked: Asked): Promise<AwsSession>;
  /** What to change if AWS refuses. */
  fixOf?(target: T, slug: string): string;
}

/** The methods of a plugin that issues sessions. These cannot be revoked: they end when they expire. */
export function awsCredentials<T extends AwsTarget>({
  problemsOf,
  open,
  fixOf,
}: Sessions<T>): CredentialPlugin {
  return {
    /** Also gets a session from AWS, and discards it. */
    check: async ({ role: { slug: role, settings }, signal }) => {
      const target = settings as unknown as T;
      const problems = await problemsOf(target);
      if (problems.length > 0) return problems;
      const somebody = { user: "svc-check", incident: "INC-0", leaseId: 0 };
      try {
        await open(target, { ...somebody, role, seconds: shortestSeconds, signal });
        return [];
      } catch (error) {
        if (!(error instanceof SvcError)) throw error;
        const fix = fixOf && { fix: fixOf(target, role) };
        return [{ problem: error.detail.slice(0, longestProblem), ...fix }];
      }
    },
    issue: async ({
      leaseId,
      user,
      incident,
      expiresAt,
      role: { slug: role, settings },
      signal,
      ...lease
    }) => {
      const target = settings as unknown as T;
      const seconds = sessionSeconds(lease.seconds);
      const at = after(new Date(expiresAt), -lease.seconds);
      const [problem] = await problemsOf(target);
      if (problem) throw new Refused(problem.problem);
      return credentialOf(target, await open(target, { leaseId, user, incident, role, seconds, at, signal }));
    },
    revoke: () => {},
  };
}

function credentialOf({ roleArn, region }: AwsTarget, session: AwsSession) {
  const { accessKeyId, secretAccessKey, sessionToken, expiresAt } = session;
  const end = `${expiresAt.toISOString().slice(0, 19)}Z`;
  return {
    kind: "aws" as const,
    fields: {
      access_key_id: accessKeyId,
      secret_access_key: secretAccessKey,
      session_token: sessionToken,
      expiration: end,
      role_arn: roleArn,
      ...(region === undefined ? {} : { region }),
    },
    expiresAt: end,
  };
}
