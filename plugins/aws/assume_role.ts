import { type Static, Type } from "@sinclair/typebox";
import { AwsClient } from "aws4fetch";
import { definePlugin, type PluginDeps } from "../../core/plugin.ts";
import { type Asked, awsCredentials } from "./credential.ts";
import { awsRoleSettings, sessionName, settingProblems, stsAddress } from "./role.ts";
import { assumeRole, type Signed } from "./sts.ts";

// For AWS accounts that cannot reach this server's issuer: uses the key of an IAM user that may only assume the role.

const { roleArn, accountName, ...optional } = awsRoleSettings;

const roleSchema = Type.Object({
  roleArn,
  accountName,
  accessKeyId: Type.String({ pattern: "^[A-Za-z0-9_]{16,128}$", description: "the id of the stored key" }),
  secretAccessKey: Type.String({
    secret: true,
    minLength: 16,
    maxLength: 200,
    pattern: "^[!-~]+$",
    description: "the secret of the stored key",
  }),
  externalId: Type.Optional(
    Type.String({
      minLength: 2,
      maxLength: 1224,
      pattern: "^[A-Za-z0-9_+=,.@:/-]+$",
      description: "the external id that the role's trust policy requires",
    }),
  ),
  ...optional,
});

type Target = Static<typeof roleSchema>;

export default definePlugin({
  title: "AWS with a stored key",
  slug: "aws-assume-role",
  version: "1.0.0",
  author: "svc",
  type: "credential",
  description: "Issues sessions of an AWS role, with the stored key of an IAM user",
  configSchema: Type.Object({}),
  roleSchema,
  revocable: "expiry",
  create: (_, deps) =>
    awsCredentials<Target>({
      problemsOf: settingProblems,
      open: (target, asked) => assume(deps, target, asked),
    }),
});

async function assume(deps: PluginDeps, target: Target, { user, seconds, signal }: Asked) {
  return await assumeRole(deps, {
    address: stsAddress(target),
    action: "AssumeRole",
    signal,
    parameters: {
      RoleArn: target.roleArn,
      RoleSessionName: sessionName(user),
      DurationSeconds: String(seconds),
      Policy: target.sessionPolicy,
      ExternalId: target.externalId,
    },
    sign: (request) => signed(deps, target, request),
    faults: {
      AccessDenied:
        "The stored key may not assume this AWS role: check the role's trust policy and the user's sts:AssumeRole",
      InvalidClientTokenId: "The stored key does not exist in AWS: check accessKeyId",
      SignatureDoesNotMatch: "AWS rejected the signature: check secretAccessKey and this machine's clock",
    },
  });
}

/** Signature Version 4 over the body and its type only, because a proxy may rewrite the other headers. */
async function signed({ clock }: PluginDeps, target: Target, { headers, body }: Signed): Promise<Signed> {
  const { accessKeyId, secretAccessKey, region = "us-east-1" } = target;
  const client = new AwsClient({ accessKeyId, secretAccessKey, service: "sts", region });
  const datetime = clock
    .now()
    .toISOString()
    .replaceAll(/[-:]|\.\d+/g, "");
  const request = await client.sign(stsAddress(target), {
    method: "POST",
    headers: { "content-type": headers["content-type"]! },
    body,
    aws: { datetime, allHeaders: true },
  });
  return { headers: { ...headers, ...Object.fromEntries(request.headers) }, body };
}
