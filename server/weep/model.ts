import { Type } from "@sinclair/typebox";
import { t } from "elysia";
import { closed } from "../http/schema.ts";

// The part of ConsoleMe's API that Weep uses.

/** Weep always sends `true`. We return the roles that the user may request, whatever the value. */
export const rolesQuery = t.Object({ all: t.Optional(t.String({ maxLength: 10 })) }, closed);
export const roleArns = t.Array(t.String());
export const roleDetails = t.Object({
  status: t.Literal("success"),
  status_code: Type.Literal(200),
  data: t.Object({
    roles: t.Array(
      t.Object({
        arn: t.String(),
        account_id: t.String(),
        account_friendly_name: t.String(),
        role_name: t.String(),
        apps: t.Object({ app_details: t.Array(t.Object({})) }),
      }),
    ),
  }),
});

/** Allows unknown fields: `metadata` depends on Weep's configuration, and later versions may send more. */
export const credentialsRequest = t.Object(
  {
    requested_role: t.String({ minLength: 1, maxLength: 700, description: "An ARN, or part of one" }),
    no_ip_restrictions: t.Optional(
      t.Boolean({ description: "Ignored: credentials are not tied to addresses" }),
    ),
  },
  { additionalProperties: true },
);
export const credentials = t.Object({
  Credentials: t.Object({
    AccessKeyId: t.String(),
    SecretAccessKey: t.String(),
    SessionToken: t.String(),
    Expiration: Type.Integer({ description: "In seconds since 1970" }),
    RoleArn: t.String(),
  }),
});

export const resourceQuery = t.Object({ arn: t.String({ minLength: 1, maxLength: 2048 }) }, closed);
export const resource = t.Object({ status: t.Literal("success"), data: t.Object({ url: t.String() }) });

export const searchQuery = t.Object(
  {
    search: t.Optional(t.String({ maxLength: 700 })),
    resource: t.String({ maxLength: 40, description: "`account`, or `iam_arn` for roles" }),
    limit: t.Optional(t.String({ pattern: "^[1-9][0-9]{0,4}$" })),
  },
  closed,
);
export const titles = t.Array(t.Object({ title: t.String() }));

export const weepProblemSchema = t.Object({
  status: t.Literal("error"),
  code: t.String({ description: "`899` to `906`, or `invalid_jwt` if the token is refused" }),
  message: t.String(),
  errors: t.Array(t.String()),
  requested_role: t.String(),
  request_id: t.String(),
});
