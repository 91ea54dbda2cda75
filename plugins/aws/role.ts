import { createHash } from "node:crypto";
import { Type } from "@sinclair/typebox";
import type { RoleFacts } from "../../core/plugin.ts";
import { Refused } from "../../platform/errors.ts";

// What all access roles for AWS have in common, whichever way svc comes to a session of theirs. Weep and other AWS clients
// find them by the setting `roleArn` (core/access/aws_role.ts).

/** https, or this machine. */
const endpointPattern =
  "^(https://[^\\s/@?#]+|http://(localhost|127(\\.[0-9]{1,3}){3}|\\[::1\\])(:[0-9]{1,5})?)/?$";

export const awsRoleSettings = {
  roleArn: Type.String({
    pattern: "^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,576}$",
    description: "the AWS role, such as arn:aws:iam::123456789012:role/deploy",
  }),
  accountName: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: "what people call the AWS account" }),
  ),
  region: Type.Optional(
    Type.String({
      ...{ maxLength: 40, pattern: "^[a-z]{2,}(-[a-z]+)+-[0-9]{1,2}$" },
      description: "the region whose STS is asked, and that clients start with, such as eu-central-1",
    }),
  ),
  sessionPolicy: Type.Optional(
    Type.String({ maxLength: 2048, description: "an IAM policy (JSON) that limits each session further" }),
  ),
  endpoint: Type.Optional(
    Type.String({
      ...{ maxLength: 500, pattern: endpointPattern },
      description: "the address of STS (https), if it is not AWS's own",
    }),
  ),
};

export interface AwsTarget {
  roleArn: string;
  region?: string;
  sessionPolicy?: string;
  endpoint?: string;
}

export function targetOf<T extends AwsTarget>({ settings }: RoleFacts): T {
  return settings as unknown as T;
}

export function stsAddress({ endpoint, region }: AwsTarget): string {
  if (endpoint !== undefined) return `${endpoint.replace(/\/$/, "")}/`;
  if (region === undefined) return "https://sts.amazonaws.com/";
  return `https://sts.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}/`;
}

/** What can be seen to be wrong without asking AWS. */
export function settingProblems({
  roleArn,
  region,
  sessionPolicy,
  endpoint,
}: AwsTarget): { problem: string }[] {
  const problems: string[] = [];
  const partition = roleArn.split(":")[1]!;
  if (partition !== "aws" && region === undefined && endpoint === undefined)
    problems.push(`A role in the partition ${partition} needs the setting region`);
  if (sessionPolicy !== undefined && !isPolicy(sessionPolicy))
    problems.push("The setting sessionPolicy is not an IAM policy in JSON, with Version and Statement");
  return problems.map((problem) => ({ problem }));
}

function isPolicy(text: string): boolean {
  try {
    const { Statement } = Object(JSON.parse(text)) as { Statement?: unknown };
    return typeof Statement === "object" && Statement !== null;
  } catch {
    return false;
  }
}

/** Of AssumeRole and AssumeRoleWithWebIdentity. */
export const shortestSeconds = 900;
const longestSeconds = 43_200;
/** Of a request that was approved for 15 minutes, a moment is over when it is used. */
const graceSeconds = 60;

/** What AWS is asked for, for a lease of so many seconds. @throws Refused where AWS has no such session */
export function sessionSeconds(seconds: number): number {
  if (seconds > longestSeconds)
    throw new Refused("AWS sessions last 12 hours at most: choose a shorter --duration");
  if (seconds < shortestSeconds - graceSeconds)
    throw new Refused(
      "AWS sessions last 15 minutes at least, and cannot be ended earlier: ask for a --duration of 15m or more",
    );
  return Math.max(shortestSeconds, Math.floor(seconds));
}

const longestName = 64;

/** The user as CloudTrail shows it. What AWS does not take in it is replaced, and what was replaced told apart. */
export function sessionName(user: string): string {
  const name = user.replaceAll(/[^\w+=,.@-]/g, "-");
  if (name === user && name.length <= longestName) return name;
  const digest = createHash("sha256").update(user).digest("hex").slice(0, 8);
  return `${name.slice(0, longestName - 9)}-${digest}`;
}
