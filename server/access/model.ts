import { Type } from "@sinclair/typebox";
import { type Static, t } from "elysia";
import type { Lease } from "../../core/access/lease.ts";
import { type AccessRequest, longestReason } from "../../core/access/request.ts";
import type { Role } from "../../core/access/role.ts";
import { longestSeconds, longestSlug, mostGroups, type RoleFields } from "../../core/access/role_fields.ts";
import { credentialKinds } from "../../core/plugin/methods.ts";
import { accessRequestStates, approvals, leaseStates, mostApprovals } from "../../drizzle/schema/index.ts";
import { fromApi, toApi } from "../../platform/names.ts";
import type { Deps } from "../deps.ts";
import {
  closed,
  id,
  idText,
  instant,
  listQuery,
  nullable,
  oneOf,
  readOnly,
  version,
} from "../http/schema.ts";

const slug = t.String({ pattern: "^[a-z0-9]+(-[a-z0-9]+)*$", maxLength: longestSlug });
const seconds = (description: string) => Type.Integer({ minimum: 60, maximum: longestSeconds, description });
const note = t.Optional(t.String({ maxLength: longestReason }));
const incidentName = t.String({
  pattern: "^INC-[1-9][0-9]{0,18}$",
  description: "The incident's name, such as INC-7",
});
const setting = t.Union([t.String({ maxLength: 20_000 }), t.Number(), t.Boolean()]);
const settings = t.Record(t.String(), setting);

const roleFields = {
  slug,
  description: t.String({ maxLength: 500 }),
  plugin: t.String({ maxLength: 40, description: "A plugin of type `credential`" }),
  groups: t.Array(t.String({ minLength: 1, maxLength: 200 }), {
    maxItems: mostGroups,
    description: "The groups that may request it; `*` means every signed-in user",
  }),
  default_duration: seconds("In seconds; requests may ask for a different duration"),
  max_duration: seconds("In seconds, including renewals"),
  approval: oneOf(approvals, {
    description:
      "Who must approve: nobody, the incident's commander or an admin, an admin, or `approver_groups`",
  }),
  incident_required: t.Boolean(),
  break_glass: t.Boolean({
    description: "Whether users may get it without approval, subject to review afterwards",
  }),
  disabled: t.Boolean({ description: "Disables the role: no credentials are issued, and all leases end" }),
};

const approvalsNeeded = (description: string) =>
  Type.Integer({ minimum: 1, maximum: mostApprovals, description });
const approverGroups = t.Array(t.String({ minLength: 1, maxLength: 200 }), {
  maxItems: mostGroups,
  description: "With approval `group`: the members of any of these groups approve. Otherwise empty",
});

const roleView = {
  id,
  ...roleFields,
  approver_groups: approverGroups,
  approvals_needed: approvalsNeeded("How many different users must approve"),
  version,
  created_at: instant,
  updated_at: instant,
  settings: nullable(settings),
  revocable: nullable(
    oneOf(["now", "expiry"], {
      description: "Whether credentials can be ended early (`now`); null while the plugin is not enabled",
    }),
  ),
  public_key: nullable(
    oneOf(["ssh", "x509"], { description: "The kind of public key that is certified, if any" }),
  ),
  renewable: t.Boolean({ description: "Whether leases can be renewed" }),
};
export const accessRoleView = t.Object(roleView, closed);
export const roleParams = t.Object({ role: slug }, closed);
export const roleQuery = listQuery("`slug`");

const writtenRole = {
  ...roleFields,
  approver_groups: t.Optional(approverGroups),
  approvals_needed: t.Optional(approvalsNeeded("How many different users must approve; 1 if omitted")),
  settings: t.Record(t.String(), setting, {
    description: "The plugin's settings. On PUT, an omitted secret keeps its value",
  }),
};
export const newRole = t.Object(writtenRole, closed);
export const changedRole = t.Object(
  { ...writtenRole, version, ...readOnly(roleView, { ...writtenRole, version }) },
  closed,
);

export function roleViewOf(role: Role, { plugins }: Pick<Deps, "plugins">): Static<typeof accessRoleView> {
  const { pluginSlug, disabledAt, settings, ...rest } = role;
  const { revocable = null, publicKey = null, methods } = plugins.find("credential", pluginSlug) ?? {};
  const renewable = methods?.renew !== undefined;
  const disabled = disabledAt !== null;
  return { ...toApi({ ...rest, plugin: pluginSlug, disabled, revocable, publicKey, renewable }), settings };
}

export function roleFieldsOf({ settings, ...body }: Static<typeof newRole>): RoleFields {
  return { ...fromApi(body), settings };
}

export const checkView = t.Object(
  {
    problems: t.Array(
      t.Object(
        {
          problem: t.String(),
          fix: t.Optional(t.String()),
          warning: t.Optional(Type.Boolean({ description: "Whether the role can be used nevertheless" })),
        },
        closed,
      ),
    ),
  },
  closed,
);

const names = t.Array(t.String({ maxLength: 200 }), { maxItems: 5000 });
export const differencesView = t.Object(
  {
    orphans: Type.Array(t.String(), {
      description: "Names of credentials at the target without an unfinished lease",
    }),
    missing: Type.Array(t.String(), {
      description: "Names of Active leases that do not exist at the target",
    }),
  },
  closed,
);
export const chosenDifferences = t.Object({ names }, closed);
export const revokingView = t.Object({ revoking: Type.Array(t.String()) }, closed);

export const requestView = t.Object(
  {
    id,
    role: slug,
    user: t.String(),
    incident: nullable(t.String()),
    reason: t.String(),
    duration: Type.Integer(),
    state: oneOf(accessRequestStates),
    break_glass: t.Boolean(),
    created_at: instant,
    expires_at: instant,
    approval: oneOf(approvals, { description: "Who may approve, as in its role" }),
    approver_groups: approverGroups,
    approvals_needed: approvalsNeeded("How many different users must approve, as in its role"),
    approved_by: t.Array(t.String(), { description: "The users who have approved it so far" }),
    decided_at: nullable(instant),
    decided_by: nullable(t.String()),
    note: nullable(t.String()),
    reviewed_at: nullable(instant),
    reviewed_by: nullable(t.String()),
  },
  closed,
);
export const requestParams = t.Object({ request_id: idText }, closed);
const byCreation = "`created_at` or `-created_at` (default)";
export const requestQuery = listQuery(byCreation, {
  state: t.Optional(oneOf(accessRequestStates)),
  unreviewed: t.Optional(
    oneOf(["true", "false"], { description: "Only break-glass requests that nobody has reviewed" }),
  ),
});
export const newRequest = t.Object(
  {
    role: slug,
    incident: t.Optional(incidentName),
    reason: t.String({ minLength: 1, maxLength: longestReason }),
    duration: t.Optional(seconds("In seconds; the role's default if omitted")),
    break_glass: t.Optional(t.Boolean()),
  },
  closed,
);
export const decision = t.Optional(t.Object({ note }, closed));

export function requestViewOf(request: AccessRequest): Static<typeof requestView> {
  const { roleId, incidentId, asParticipant, userName: user, incidentName: incident, ...rest } = request;
  return toApi({ ...rest, user, incident });
}

const leaseFields = {
  id,
  role: slug,
  user: t.String(),
  incident: nullable(t.String()),
  request_id: nullable(id),
  name: t.String({ description: "The credential's name at its target" }),
  state: oneOf(leaseStates),
  created_at: instant,
  expires_at: instant,
  max_expires_at: instant,
  end_reason: nullable(t.String()),
  attempts: Type.Integer({ description: "Attempts to revoke it" }),
  next_attempt_at: nullable(instant),
  error: nullable(t.String()),
};
export const leaseView = t.Object(leaseFields, closed);
export const explanationView = t.Object({ items: t.Array(t.String()) }, closed);
export const leaseParams = t.Object({ lease_id: idText }, closed);
const leaseFilters = {
  user: t.Optional(t.String({ maxLength: 300 })),
  role: t.Optional(slug),
  incident: t.Optional(incidentName),
};
export const leaseQuery = listQuery(byCreation, { state: t.Optional(oneOf(leaseStates)), ...leaseFilters });
export const revokedQuery = t.Object(leaseFilters, closed);
export const revokedView = t.Object(
  {
    ended: Type.Integer(),
    accepted_until: nullable(
      t.String({
        format: "date-time",
        description: "Until when targets may accept those of these credentials that only expire",
      }),
    ),
  },
  closed,
);
export const newLease = t.Object(
  {
    role: slug,
    request_id: t.Optional(id),
    incident: t.Optional(incidentName),
    duration: t.Optional(seconds("In seconds; the role's default if omitted")),
    renewable: t.Optional(
      Type.Boolean({
        description:
          "Whether the client renews the lease until `duration` is over, or otherwise as long as it may. If the role is `renewable`, the lease then lasts 15 minutes at a time",
      }),
    ),
    public_key: t.Optional(t.String({ maxLength: 10_000 })),
  },
  closed,
);
export const renewal = t.Optional(t.Object({ duration: t.Optional(seconds("In seconds from now")) }, closed));
export const issuedView = t.Object(
  {
    ...leaseFields,
    credential: t.Object(
      { kind: oneOf(credentialKinds), fields: t.Record(t.String(), t.String()) },
      { ...closed, description: "The secret, which is returned once and never stored" },
    ),
  },
  closed,
);

export function leaseViewOf(lease: Lease): Static<typeof leaseView> {
  const { id, role, userName: user, incidentName: incident, requestId, name, state, attempts, error } = lease;
  const { createdAt, expiresAt, maxExpiresAt, endReason } = lease;
  const nextAttemptAt = state === "Revoking" ? lease.dueAt : null;
  const times = { createdAt, expiresAt, maxExpiresAt, nextAttemptAt };
  return toApi({ id, role, user, incident, requestId, name, state, endReason, attempts, error, ...times });
}
