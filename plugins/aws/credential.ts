import type { AwsSession } from "./answer.ts";
import type { AwsTarget } from "./role.ts";

/** Formats a session as a credential. It cannot be revoked, so it ends when it expires. */
export function awsCredential({ roleArn, region }: AwsTarget, session: AwsSession) {
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
