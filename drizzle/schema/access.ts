import { sql } from "drizzle-orm";
import { boolean, check, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { editable, id, idOf, oneOf } from "./columns.ts";
import { incident } from "./incident.ts";
import { bytes, instant } from "./types.ts";
import { workColumns } from "./work.ts";

/** Who decides on a request: nobody has to, the commander of its incident or an admin, or an admin alone. */
export const approvals = ["none", "commander", "admin"] as const;

/** Something that can be requested: by which plugin, how it is reached, by whom and for how long. */
export const accessRole = pgTable(
  "access_role",
  {
    id: id(),
    slug: text("slug").notNull(),
    description: text("description").notNull(),
    pluginSlug: text("plugin_slug").notNull(),
    /** What the plugin needs to know, but for its secrets. */
    settings: jsonb("settings").$type<Record<string, string | number | boolean>>().notNull(),
    /** The secret settings as JSON, sealed with SVC_KEY_SECRET (platform/sealed.ts); null: there are none. */
    secrets: bytes("secrets"),
    /** Who may request it; `*` is everybody who is signed in. */
    groups: text("groups").array().notNull(),
    /** Seconds. */
    defaultDuration: integer("default_duration").notNull(),
    maxDuration: integer("max_duration").notNull(),
    approval: text("approval", { enum: approvals }).notNull(),
    incidentRequired: boolean("incident_required").notNull(),
    breakGlass: boolean("break_glass").notNull(),
    disabledAt: instant("disabled_at"),
    ...editable(),
  },
  (table) => [
    uniqueIndex("access_role_slug_idx").on(table.slug),
    check("access_role_approval_known", oneOf("approval", approvals)),
    check("access_role_durations", sql`0 < default_duration and default_duration <= max_duration`),
  ],
);

export const accessRequestStates = ["Pending", "Approved", "Denied", "Cancelled", "Expired"] as const;

/** That somebody asks for a role. A decision is one conditional UPDATE on `state`. */
export const accessRequest = pgTable(
  "access_request",
  {
    id: id(),
    roleId: idOf("role_id")
      .notNull()
      .references(() => accessRole.id, { onDelete: "restrict" }),
    userName: text("user_name").notNull(),
    /** Null: of none, or of one that was deleted since; its name stays. */
    incidentId: idOf("incident_id").references(() => incident.id, { onDelete: "set null" }),
    incidentName: text("incident_name"),
    /** The user took part in the incident then: it ends when they no longer do. */
    asParticipant: boolean("as_participant").notNull().default(false),
    reason: text("reason").notNull(),
    /** Seconds. */
    duration: integer("duration").notNull(),
    state: text("state", { enum: accessRequestStates }).notNull().default("Pending"),
    /** Approved by nobody: the approvers were told, and one of them has to review it. */
    breakGlass: boolean("break_glass").notNull().default(false),
    createdAt: instant("created_at").notNull(),
    /** Pending until then; once it is Approved, what leases of it end by. */
    expiresAt: instant("expires_at").notNull(),
    decidedAt: instant("decided_at"),
    decidedBy: text("decided_by"),
    /** What the one who decided says. */
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
 * One credential that was issued, and never the secret in it. It is durable work from the beginning: its revocation,
 * which is due when it expires, when something that it rests on ends, or when nobody has said in time that it was issued.
 * Beware of two meanings: `lease_until` is the claim of the worker that revokes it now (work.ts), `expires_at` the end for the user.
 */
export const accessLease = pgTable(
  "access_lease",
  {
    id: id(),
    roleId: idOf("role_id")
      .notNull()
      .references(() => accessRole.id, { onDelete: "restrict" }),
    requestId: idOf("request_id").references(() => accessRequest.id, { onDelete: "restrict" }),
    incidentId: idOf("incident_id").references(() => incident.id, { onDelete: "set null" }),
    incidentName: text("incident_name"),
    /** As in the request. */
    asParticipant: boolean("as_participant").notNull().default(false),
    userName: text("user_name").notNull(),
    tokenId: uuid("token_id").notNull(),
    /** The client's key; a repetition ends the first lease, because its secret may have been lost on the way. */
    idempotencyKey: text("idempotency_key"),
    /** What it is called at the target. */
    name: text("name").notNull(),
    /** What its plugin wants to hear again. */
    handle: text("handle"),
    state: text("state", { enum: leaseStates }).notNull().default("Issuing"),
    createdAt: instant("created_at").notNull(),
    issuedAt: instant("issued_at"),
    expiresAt: instant("expires_at").notNull(),
    maxExpiresAt: instant("max_expires_at").notNull(),
    /** Why it ends before it expires. */
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
    // What its plugin knows by a handle and has not expired: which certificates are revoked is asked every few seconds.
    index("access_lease_handle_idx")
      .on(table.expiresAt)
      .where(sql`handle is not null`),
    check("access_lease_state_known", oneOf("state", leaseStates)),
    check("access_lease_finished", sql`(state in ('Revoked', 'Failed')) = (finished_at is not null)`),
    check("access_lease_issued", sql`state <> 'Active' or issued_at is not null`),
  ],
);
