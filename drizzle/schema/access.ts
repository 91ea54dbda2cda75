import { sql } from "drizzle-orm";
import { boolean, check, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { editable, id, idOf, oneOf, referenceTo } from "./columns.ts";
import { incident } from "./incident.ts";
import { bytes, instant } from "./types.ts";
import { workColumns } from "./work.ts";

/** Who must approve a request: nobody, the commander of its incident or an admin, an admin, or members of given groups. */
export const approvals = ["none", "commander", "admin", "group"] as const;
/** How many approvals a role may require. */
export const mostApprovals = 10;

/** An access role: the plugin that serves it, its target, who may request it and for how long. */
export const accessRole = pgTable(
  "access_role",
  {
    id: id(),
    slug: text("slug").notNull(),
    description: text("description").notNull(),
    pluginSlug: text("plugin_slug").notNull(),
    /** The plugin's settings without secrets. */
    settings: jsonb("settings").$type<Record<string, string | number | boolean>>().notNull(),
    /** The secret settings as JSON, sealed with SVC_KEY_SECRET (platform/sealed.ts), or null. */
    secrets: bytes("secrets"),
    /** The groups that may request it; `*` means every signed-in user. */
    groups: text("groups").array().notNull(),
    /** In seconds. */
    defaultDuration: integer("default_duration").notNull(),
    maxDuration: integer("max_duration").notNull(),
    approval: text("approval", { enum: approvals }).notNull(),
    /** With approval `group`, the groups whose members approve. */
    approverGroups: text("approver_groups").array().notNull().default([]),
    approvalsNeeded: integer("approvals_needed").notNull().default(1),
    incidentRequired: boolean("incident_required").notNull(),
    breakGlass: boolean("break_glass").notNull(),
    disabledAt: instant("disabled_at"),
    ...editable(),
  },
  (table) => [
    uniqueIndex("access_role_slug_idx").on(table.slug),
    check("access_role_approval_known", oneOf("approval", approvals)),
    check("access_role_approvals_needed", sql.raw(`approvals_needed between 1 and ${mostApprovals}`)),
    check("access_role_durations", sql`0 < default_duration and default_duration <= max_duration`),
  ],
);

export const accessRequestStates = ["Pending", "Approved", "Denied", "Cancelled", "Expired"] as const;

/** A user's request for a role. A decision is one conditional UPDATE on `state`. */
export const accessRequest = pgTable(
  "access_request",
  {
    id: id(),
    roleId: referenceTo("role_id", () => accessRole.id),
    userName: text("user_name").notNull(),
    /** Null without an incident, or if the incident was deleted, in which case its name stays. */
    incidentId: idOf("incident_id").references(() => incident.id, { onDelete: "set null" }),
    incidentName: text("incident_name"),
    /** Whether the user was a participant of the incident. If so, the access ends when they leave it. */
    asParticipant: boolean("as_participant").notNull().default(false),
    reason: text("reason").notNull(),
    /** In seconds. */
    duration: integer("duration").notNull(),
    state: text("state", { enum: accessRequestStates }).notNull().default("Pending"),
    /** Approved without a decision. The approvers were notified, and one of them must review it. */
    breakGlass: boolean("break_glass").notNull().default(false),
    createdAt: instant("created_at").notNull(),
    /** While Pending: when the request expires. Once Approved: when its leases must end. */
    expiresAt: instant("expires_at").notNull(),
    /** The users who approved it. The last one decides if the role requires several. */
    approvedBy: text("approved_by").array().notNull().default([]),
    decidedAt: instant("decided_at"),
    decidedBy: text("decided_by"),
    /** The note of the user who decided, or approved last. */
    note: text("note"),
    reviewedAt: instant("reviewed_at"),
    reviewedBy: text("reviewed_by"),
  },
  (table) => [
    index("access_request_created_idx").on(table.createdAt, table.id),
    index("access_request_user_idx").on(table.userName, table.createdAt, table.id),
    index("access_request_role_idx").on(table.roleId),
    index("access_request_incident_idx").on(table.incidentId),
    index("access_request_pending_idx")
      .on(table.expiresAt)
      .where(sql`state = 'Pending'`),
    index("access_request_unreviewed_idx")
      .on(table.id)
      .where(sql`break_glass and reviewed_at is null`),
    check("access_request_state_known", oneOf("state", accessRequestStates)),
    check("access_request_decided", sql`(state = 'Pending') = (decided_at is null)`),
  ],
);

export const leaseStates = ["Issuing", "Active", "Revoking", "Revoked", "Failed"] as const;

/**
 * An issued credential, without its secret. It is durable work from the beginning: its revocation is due when it expires,
 * when it loses its basis, or when its issue was not confirmed in time. Note the difference: `lease_until` is the claim of
 * the worker that currently revokes it (work.ts), and `expires_at` is the end for the user.
 */
export const accessLease = pgTable(
  "access_lease",
  {
    id: id(),
    roleId: referenceTo("role_id", () => accessRole.id),
    requestId: idOf("request_id").references(() => accessRequest.id, { onDelete: "restrict" }),
    incidentId: idOf("incident_id").references(() => incident.id, { onDelete: "set null" }),
    incidentName: text("incident_name"),
    /** See the request. */
    asParticipant: boolean("as_participant").notNull().default(false),
    userName: text("user_name").notNull(),
    tokenId: uuid("token_id").notNull(),
    /** The client's Idempotency-Key. A repeated request ends the first lease, because its secret may have been lost. */
    idempotencyKey: text("idempotency_key"),
    /** The credential's name at the target. */
    name: text("name").notNull(),
    /** The plugin's handle, which later calls receive. */
    handle: text("handle"),
    state: text("state", { enum: leaseStates }).notNull().default("Issuing"),
    createdAt: instant("created_at").notNull(),
    issuedAt: instant("issued_at"),
    expiresAt: instant("expires_at").notNull(),
    maxExpiresAt: instant("max_expires_at").notNull(),
    /** The reason for which it ends. */
    endReason: text("end_reason"),
    ...workColumns,
  },
  (table) => [
    uniqueIndex("access_lease_name_idx").on(table.name),
    index("access_lease_created_idx").on(table.createdAt, table.id),
    index("access_lease_user_idx").on(table.userName, table.createdAt, table.id),
    index("access_lease_role_idx").on(table.roleId),
    index("access_lease_request_idx").on(table.requestId),
    index("access_lease_incident_idx").on(table.incidentId),
    index("access_lease_due_idx")
      .on(table.roleId, table.dueAt)
      .where(sql`finished_at is null`),
    // Unexpired leases with a handle: revocation lists query the revoked certificates every few seconds.
    index("access_lease_handle_idx")
      .on(table.expiresAt)
      .where(sql`handle is not null`),
    check("access_lease_state_known", oneOf("state", leaseStates)),
    check("access_lease_finished", sql`(state in ('Revoked', 'Failed')) = (finished_at is not null)`),
    check("access_lease_issued", sql`state <> 'Active' or issued_at is not null`),
  ],
);
