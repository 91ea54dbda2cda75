import { Elysia } from "elysia";
import { type AwsRole, listAwsRoles, matchAwsRole } from "../../core/access/aws_role.ts";
import { revokeLease } from "../../core/access/end.ts";
import { issueLease } from "../../core/access/issue.ts";
import type { Actor } from "../../core/context.ts";
import { SvcError } from "../../platform/errors.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import {
  credentials,
  credentialsRequest,
  resource,
  resourceQuery,
  roleArns,
  roleDetails,
  rolesQuery,
  searchQuery,
  titles,
  weepProblemSchema,
} from "./model.ts";
import { type WeepCode, WeepRefusal, weepCodes } from "./refusal.ts";

// ConsoleMe's paths, for an unmodified Weep: lists the AWS roles that the user may request, and issues credentials for
// them. These leases are like any others (core/access/lease.ts).

const refusals = { 400: weepProblemSchema, 401: weepProblemSchema, 403: weepProblemSchema };
const refusalsOfOne = { ...refusals, 404: weepProblemSchema, 409: weepProblemSchema };

export const weepRoutes = (deps: Deps) =>
  new Elysia({ name: "weep", prefix: "/api" })
    .use(actorMacro(deps))
    .get("/v1/get_roles", async ({ actor }) => arnsOf(await listAwsRoles(deps, actor)), {
      actor: true,
      query: rolesQuery,
      detail: { summary: "List the ARNs of your AWS roles" },
      response: { 200: roleArns, ...refusals },
    })
    .get(
      "/v2/get_roles",
      async ({ actor }) => ({
        status: "success" as const,
        status_code: 200 as const,
        data: { roles: detailsOf(await listAwsRoles(deps, actor)) },
      }),
      {
        actor: true,
        query: rolesQuery,
        detail: { summary: "List your AWS roles" },
        response: { 200: roleDetails, ...refusals },
      },
    )
    .post(
      "/v1/get_credentials",
      ({ actor, body, request }) => issue(deps, actor, body.requested_role, request.signal),
      {
        actor: true,
        body: credentialsRequest,
        detail: { summary: "Issue credentials for an AWS role" },
        response: { 200: credentials, ...refusalsOfOne, 503: weepProblemSchema },
      },
    )
    .get(
      "/v2/get_resource_url",
      async ({ actor, query }) => {
        const { slug } = roleOf(await listAwsRoles(deps, actor), query.arn);
        return { status: "success" as const, data: { url: `/access/roles/${slug}` } };
      },
      {
        actor: true,
        query: resourceQuery,
        detail: { summary: "Get the path of an AWS role in this service" },
        response: { 200: resource, ...refusalsOfOne },
      },
    )
    .get(
      "/v1/policies/typeahead",
      async ({ actor, query: { search = "", resource, limit } }) =>
        found(await listAwsRoles(deps, actor), resource, search)
          .slice(0, limit === undefined ? 20 : Number(limit))
          .map((title) => ({ title })),
      {
        actor: true,
        query: searchQuery,
        detail: { summary: "Search your AWS accounts and roles" },
        response: { 200: titles, ...refusals },
      },
    );

/** The distinct ARNs: several access roles may have the same one. */
const arnsOf = (roles: readonly AwsRole[]): string[] => [...new Set(roles.map(({ arn }) => arn))];

function detailsOf(roles: readonly AwsRole[]) {
  const byArn = new Map(roles.map((role) => [role.arn, role]));
  return [...byArn.values()].map(({ arn, accountId, accountName, name }) => ({
    arn,
    account_id: accountId,
    account_friendly_name: accountName,
    role_name: name,
    apps: { app_details: [] },
  }));
}

/** Weep parses an account's title as `name (id)`. */
function found(roles: readonly AwsRole[], resource: string, search: string): string[] {
  const accounts = roles.map(
    ({ accountId, accountName }) => `${accountName.replace(/[()]/g, "")} (${accountId})`,
  );
  const among = resource === "account" ? accounts : resource === "iam_arn" ? arnsOf(roles) : [];
  const text = search.toLowerCase();
  return [...new Set(among)].filter((title) => title.toLowerCase().includes(text));
}

const unmatched: Record<string, [WeepCode, string]> = {
  invalid_arn: [weepCodes.invalidArn, "Not the ARN of an IAM role"],
  unknown_account: [weepCodes.unknownAccount, "You may not request any role in this AWS account"],
  no_match: [
    weepCodes.noMatch,
    "There is no such AWS role, or you may not request it: svc access list shows your roles",
  ],
};

/** @throws WeepRefusal */
function roleOf(roles: readonly AwsRole[], wanted: string): AwsRole {
  const match = matchAwsRole(roles, wanted);
  if ("role" in match) return match.role;
  if ("several" in match) {
    const arns = match.several.slice(0, 10).join(", ");
    throw new WeepRefusal(
      weepCodes.severalMatches,
      "conflict",
      `Several roles match: ${arns}: specify one of them`,
      wanted,
    );
  }
  const [weepCode, detail] = unmatched[match.none]!;
  const code = weepCode === weepCodes.invalidArn ? "invalid_input" : "not_found";
  throw new WeepRefusal(weepCode, code, detail, wanted);
}

/** @throws WeepRefusal */
async function issue(deps: Deps, actor: Actor, wanted: string, signal: AbortSignal) {
  const { slug, arn, needsRequest, requestId } = roleOf(await listAwsRoles(deps, actor), wanted);
  const refuse = (code: SvcError["code"], detail: string, cause?: unknown) =>
    new WeepRefusal(weepCodes.notIssued, code, detail, wanted, { cause });
  if (needsRequest && requestId === undefined)
    throw refuse("forbidden", `${slug} requires a request: svc access request ${slug} --reason ...`);
  const { lease, credential } = await issueLease(deps, actor, { role: slug, requestId, signal }).catch(
    (error: unknown) => {
      if (!(error instanceof SvcError) || error.code === "internal" || error.code === "configuration")
        throw error;
      throw refuse(error.code, error.detail, error);
    },
  );
  const { access_key_id, secret_access_key, session_token, expiration } = credential.fields;
  if (credential.kind !== "aws" || !access_key_id || !secret_access_key || !session_token) {
    await revokeLease(deps, actor, lease.id);
    throw refuse("unavailable", `The plugin of ${slug} does not issue AWS credentials`);
  }
  const end = expiration === undefined ? lease.expiresAt : new Date(expiration);
  return {
    Credentials: {
      AccessKeyId: access_key_id,
      SecretAccessKey: secret_access_key,
      SessionToken: session_token,
      Expiration: Math.floor(end.getTime() / 1000),
      RoleArn: arn,
    },
  };
}
