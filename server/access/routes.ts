import { Elysia, status, t } from "elysia";
import { checkRole } from "../../core/access/check.ts";
import { cancelRequest, decideRequest, reviewRequest } from "../../core/access/decide.ts";
import { revokeLease, revokeLeases } from "../../core/access/end.ts";
import { explainLease } from "../../core/access/explain.ts";
import { issueLease } from "../../core/access/issue.ts";
import { getLease, listLeases } from "../../core/access/lease.ts";
import { reconcileRole, revokeDifferences } from "../../core/access/reconcile.ts";
import { renewAccess } from "../../core/access/renew.ts";
import { type AccessRequest, getRequest, listRequests, requestAccess } from "../../core/access/request.ts";
import { getRole, listRoles } from "../../core/access/role.ts";
import { createRole, removeRole, updateRole } from "../../core/access/role_change.ts";
import { parseUserName } from "../../core/auth/user/field.ts";
import type { Actor, Context } from "../../core/context.ts";
import { assertKey } from "../../core/idempotency/once.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { nothing } from "../http/body.ts";
import {
  problemSchema,
  refusals,
  refusalsOfChange,
  refusalsOfOne,
  refusalsOfPost,
  refusalsOfPostWithin,
} from "../http/error.ts";
import { withEtag } from "../http/etag.ts";
import { created, withIdempotencyKey } from "../http/idempotency.ts";
import { listQueryOf, pageOf } from "../http/schema.ts";
import { refreshed } from "../sso/refresh.ts";
import {
  accessRoleView,
  changedRole,
  checkView,
  chosenDifferences,
  decision,
  differencesView,
  explanationView,
  issuedView,
  leaseParams,
  leaseQuery,
  leaseView,
  leaseViewOf,
  newLease,
  newRequest,
  newRole,
  renewal,
  requestParams,
  requestQuery,
  requestView,
  requestViewOf,
  revokedQuery,
  revokedView,
  revokingView,
  roleFieldsOf,
  roleParams,
  roleQuery,
  roleViewOf,
} from "./model.ts";

/** Access roles: what can be requested. */
const roleRoutes = (deps: Deps) =>
  new Elysia({ name: "access roles", prefix: "/access/roles" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, query }) => {
        const page = await listRoles(deps, actor, listQueryOf(query));
        return { ...page, items: page.items.map((role) => roleViewOf(role, deps)) };
      },
      { actor: true, query: roleQuery, response: { 200: pageOf(accessRoleView), ...refusals } },
    )
    .post(
      "/",
      async ({ actor, body, request, set }) => {
        // A digest of this value is stored, so it must not include the secrets.
        const { settings, ...rest } = body;
        const known = { ...rest, settings: Object.keys(settings) };
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body: known },
          async (context) => roleViewOf(await createRole(context, actor, roleFieldsOf(body)), deps),
          async ({ slug }) => void (await getRole(deps, actor, slug)),
          (role) => `/access/roles/${role.slug}`,
        );
        return created(set, made);
      },
      { actor: true, body: newRole, response: { 201: accessRoleView, ...refusalsOfPost } },
    )
    .get(
      "/:role",
      async ({ actor, params, set }) =>
        withEtag(set, roleViewOf(await getRole(deps, actor, params.role), deps)),
      { actor: true, params: roleParams, response: { 200: accessRoleView, ...refusalsOfOne } },
    )
    .put(
      "/:role",
      async ({ actor, params, body, set }) => {
        const change = { slug: params.role, version: body.version, fields: roleFieldsOf(body) };
        return withEtag(set, roleViewOf(await updateRole(deps, actor, change), deps));
      },
      {
        actor: true,
        params: roleParams,
        body: changedRole,
        response: { 200: accessRoleView, ...refusalsOfChange },
      },
    )
    .delete(
      "/:role",
      async ({ actor, params }) => {
        await removeRole(deps, actor, params.role);
        return status(204, undefined);
      },
      { actor: true, params: roleParams, response: { 204: t.Void(), ...refusalsOfChange } },
    )
    .get("/:role/reconcile", async ({ actor, params }) => reconcileRole(deps, actor, params.role), {
      actor: true,
      detail: { summary: "Compare the leases of an access role with the credentials at its target" },
      params: roleParams,
      response: { 200: differencesView, ...refusalsOfChange, 503: problemSchema },
    })
    .post(
      "/:role/reconcile",
      async ({ actor, params, body }) =>
        revokeDifferences(deps, actor, { slug: params.role, names: body.names }),
      {
        actor: true,
        params: roleParams,
        body: chosenDifferences,
        detail: { summary: "Revoke orphans and missing leases of an access role" },
        response: { 200: revokingView, ...refusalsOfChange, 503: problemSchema },
      },
    )
    .get("/:role/check", async ({ actor, params }) => checkRole(deps, actor, params.role), {
      actor: true,
      detail: { summary: "Check that an access role can issue credentials" },
      params: roleParams,
      response: { 200: checkView, ...refusalsOfChange },
    });

/** Access requests and the decisions on them. */
const requestRoutes = (deps: Deps) => {
  /** Applies a change to a request, once per Idempotency-Key. */
  const once = async (
    actor: Actor,
    request: Request,
    body: unknown,
    work: (context: Context) => Promise<AccessRequest>,
  ) => {
    const { body: done } = await withIdempotencyKey(
      deps,
      { actor, request, body: body ?? null },
      async (context) => requestViewOf(await work(context)),
      async ({ id }) => void (await getRequest(deps, actor, id)),
    );
    return done;
  };
  return new Elysia({ name: "access requests", prefix: "/access/requests" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, query }) => {
        const { state, unreviewed } = query;
        const wanted = { ...listQueryOf(query), state, unreviewed: unreviewed === "true" };
        const page = await listRequests(deps, actor, wanted);
        return { ...page, items: page.items.map(requestViewOf) };
      },
      { actor: true, query: requestQuery, response: { 200: pageOf(requestView), ...refusals } },
    )
    .post(
      "/",
      async ({ actor, body, request, set }) => {
        const { break_glass: breakGlass = false, ...wanted } = body;
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => requestViewOf(await requestAccess(context, actor, { ...wanted, breakGlass })),
          async ({ id }) => void (await getRequest(deps, actor, id)),
          ({ id }) => `/access/requests/${id}`,
        );
        return created(set, made);
      },
      { actor: true, body: newRequest, response: { 201: requestView, ...refusalsOfPostWithin } },
    )
    .get(
      "/:request_id",
      async ({ actor, params }) => requestViewOf(await getRequest(deps, actor, Number(params.request_id))),
      { actor: true, params: requestParams, response: { 200: requestView, ...refusalsOfOne } },
    )
    .post(
      "/:request_id/approve",
      ({ actor, params, body, request }) =>
        once(actor, request, body, (context) =>
          decideRequest(context, actor, { id: Number(params.request_id), decision: "Approved", ...body }),
        ),
      {
        actor: true,
        params: requestParams,
        body: decision,
        detail: { summary: "Approve an access request" },
        response: { 200: requestView, ...refusalsOfPostWithin },
      },
    )
    .post(
      "/:request_id/deny",
      ({ actor, params, body, request }) =>
        once(actor, request, body, (context) =>
          decideRequest(context, actor, { id: Number(params.request_id), decision: "Denied", ...body }),
        ),
      {
        actor: true,
        params: requestParams,
        body: decision,
        detail: { summary: "Deny an access request or withdraw its approval" },
        response: { 200: requestView, ...refusalsOfPostWithin },
      },
    )
    .post(
      "/:request_id/cancel",
      ({ actor, params, body, request }) =>
        once(actor, request, body, (context) => cancelRequest(context, actor, Number(params.request_id))),
      {
        actor: true,
        params: requestParams,
        body: nothing,
        detail: { summary: "Cancel your access request or give up its approval" },
        response: { 200: requestView, ...refusalsOfPostWithin },
      },
    )
    .post(
      "/:request_id/review",
      ({ actor, params, body, request }) =>
        once(actor, request, body, (context) => reviewRequest(context, actor, Number(params.request_id))),
      {
        actor: true,
        params: requestParams,
        body: nothing,
        detail: { summary: "Review break-glass access" },
        response: { 200: requestView, ...refusalsOfPostWithin },
      },
    );
};

/** Leases. A repeated POST runs again, because its response, with the secret, is not stored. */
const leaseRoutes = (deps: Deps) =>
  new Elysia({ name: "access leases", prefix: "/access/leases" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, query }) => {
        const wanted = { ...listQueryOf(query), ...filtersOf(deps, query), state: query.state };
        const page = await listLeases(deps, actor, wanted);
        return { ...page, items: page.items.map(leaseViewOf) };
      },
      { actor: true, query: leaseQuery, response: { 200: pageOf(leaseView), ...refusals } },
    )
    .post(
      "/",
      async ({ actor, body, request, set }) => {
        const { request_id: requestId, public_key: publicKey, ...wanted } = body;
        const idempotencyKey = request.headers.get("idempotency-key") ?? undefined;
        if (idempotencyKey !== undefined) assertKey(idempotencyKey);
        const { lease, credential } = await issueLease(deps, await refreshed(deps, actor), {
          ...wanted,
          requestId,
          publicKey,
          idempotencyKey,
          signal: request.signal,
        });
        set.headers.location = `/access/leases/${lease.id}`;
        return status(201, { ...leaseViewOf(lease), credential });
      },
      {
        actor: true,
        body: newLease,
        detail: { summary: "Issue a credential" },
        response: { 201: issuedView, ...refusalsOfChange, 503: problemSchema },
      },
    )
    .delete(
      "/",
      async ({ actor, query }) => {
        const { ended, acceptedUntil } = await revokeLeases(deps, actor, filtersOf(deps, query));
        return { ended, accepted_until: acceptedUntil?.toISOString() ?? null };
      },
      {
        actor: true,
        query: revokedQuery,
        detail: { summary: "Revoke the leases that match a filter" },
        response: { 200: revokedView, ...refusals },
      },
    )
    .get(
      "/:lease_id",
      async ({ actor, params }) => leaseViewOf(await getLease(deps, actor, Number(params.lease_id))),
      { actor: true, params: leaseParams, response: { 200: leaseView, ...refusalsOfOne } },
    )
    .get(
      "/:lease_id/explain",
      async ({ actor, params }) => explainLease(deps, actor, Number(params.lease_id)),
      {
        actor: true,
        params: leaseParams,
        detail: { summary: "Describe what the end of a lease would hand over or drop" },
        response: { 200: explanationView, ...refusalsOfChange, 503: problemSchema },
      },
    )
    .delete(
      "/:lease_id",
      async ({ actor, params }) => leaseViewOf(await revokeLease(deps, actor, Number(params.lease_id))),
      {
        actor: true,
        params: leaseParams,
        detail: { summary: "Revoke a lease" },
        response: { 200: leaseView, ...refusalsOfOne },
      },
    )
    .post(
      "/:lease_id/renew",
      async ({ actor, params, body }) =>
        leaseViewOf(
          await renewAccess(deps, await refreshed(deps, actor), { id: Number(params.lease_id), ...body }),
        ),
      {
        actor: true,
        params: leaseParams,
        body: renewal,
        detail: { summary: "Renew a lease" },
        response: { 200: leaseView, ...refusalsOfChange, 503: problemSchema },
      },
    );

function filtersOf(
  { config }: Pick<Context, "config">,
  { user, role, incident }: { user?: string; role?: string; incident?: string },
) {
  return {
    user: user === undefined ? undefined : parseUserName("user", user, config.domain),
    role,
    incident,
  };
}

export const accessRoutes = (deps: Deps) =>
  new Elysia({ name: "access" }).use(roleRoutes(deps)).use(requestRoutes(deps)).use(leaseRoutes(deps));
