import { createHash } from "node:crypto";
import { type Static, type TObject, Type } from "@sinclair/typebox";
import type { CredentialProblem } from "../../core/plugin.ts";
import { Refused } from "../../platform/errors.ts";

// Shared by all access roles for AWS, however svc gets their sessions. Weep and other AWS clients find these roles by the
// setting `roleArn` (core/access/aws_role.ts).

/** Matches https addresses, and http addresses of this machine. */
const endpointPattern =
  "^(https://[^\\s/@?#]+|http://(localhost|127(\\.[0-9]{1,3}){3}|\\[::1\\])(:[0-9]{1,5})?)/?$";

export const awsRoleSettings = {
  roleArn: Type.String({
    pattern: "^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,576}$",
    description: "the AWS role, such as arn:aws:iam::123456789012:role/deploy",
  }),
  accountName: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: "a name for the AWS account" }),
  ),
  region: Type.Optional(
    Type.String({
      maxLength: 40,
      pattern: "^[a-z]{2,}(-[a-z]+)+-[0-9]{1,2}$",
      description: "the region of STS, and the default region of clients, such as eu-central-1",
    }),
  ),
  sessionPolicy: Type.Optional(
    Type.String({ maxLength: 2048, description: "an IAM policy (JSON) that further limits each session" }),
  ),
  endpoint: Type.Optional(
    Type.String({
      maxLength: 500,
      pattern: endpointPattern,
      description: "the address of STS (https), if not AWS's",
    }),
  ),
};

export type AwsTarget = Static<TObject<typeof awsRoleSettings>>;

export function stsAddress({ endpoint, region }: AwsTarget): string {
  if (endpoint !== undefined) return `${endpoint.replace(/\/$/, "")}/`;
  if (region === undefined) return "https://sts.amazonaws.com/";
  return `https://sts.${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}/`;
}

/** The problems of the settings that are visible without calling AWS. */
export function settingProblems({
  roleArn,
  region,
  sessionPolicy,
  endpoint,
}: AwsTarget): CredentialProblem[] {
  const problems: string[] = [];
  const partition = roleArn.split(":")[1]!;
  if (partition !== "aws" && region === undefined && endpoint === undefined)
    problems.push(`Set region: it is required in the partition ${partition}`);
  if (sessionPolicy !== undefined && !isPolicy(sessionPolicy))
    problems.push("sessionPolicy is not an IAM policy in JSON, with Version and Statement");
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

/** The limits of AssumeRole and AssumeRoleWithWebIdentity. */
export const shortestSeconds = 900;
const longestSeconds = 43_200;
/** A request approved for 15 minutes has slightly less left when it is used. */
const graceSeconds = 60;

/** The duration of the AWS session for a lease of this many seconds. @throws Refused if AWS does not support it */
export function sessionSeconds(seconds: number): number {
  if (seconds > longestSeconds)
    throw new Refused("An AWS session can last at most 12 hours: use a shorter --duration");
  if (seconds < shortestSeconds - graceSeconds)
    throw new Refused(
      "An AWS session lasts at least 15 minutes and cannot be ended early: use a --duration of 15m or more",
    );
  return Math.max(shortestSeconds, Math.floor(seconds));
}

const longestName = 64;

/** The user as CloudTrail shows it. If it has characters that AWS rejects, they are replaced, and a hash is added. */
export function sessionName(user: string): string {
  const name = user.replaceAll(/[^\w+=,.@-]/g, "-");
  if (name === user && name.length <= longestName) return name;
  const digest = createHash("sha256").update(user).digest("hex").slice(0, 8);
  return `${name.slice(0, longestName - 9)}-${digest}`;
}
