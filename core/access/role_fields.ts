import { OptionalKind } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { type approvals, mostApprovals } from "../../drizzle/schema/index.ts";
import { InvalidInput } from "../../platform/errors.ts";
import { parseText } from "../../platform/text.ts";
import type { ActivePlugin } from "../plugin/call.ts";
import type { AppContext } from "../plugin/context.ts";
import { pluginOf, type Settings } from "./role_plugin.ts";

/** A week. Access needed for longer is not temporary. */
export const longestSeconds = 7 * 24 * 3600;
const slugPattern = /^[a-z0-9]+(-[a-z0-9]+)*$/;
export const longestSlug = 60;
export const mostGroups = 100;

export interface RoleFields {
  slug: string;
  description: string;
  plugin: string;
  /** The settings that the plugin's `roleSchema` defines. An omitted secret keeps its value. */
  settings: Settings;
  groups: string[];
  defaultDuration: number;
  maxDuration: number;
  approval: (typeof approvals)[number];
  /** Only with approval `group`. */
  approverGroups?: string[];
  /** 1 by default. */
  approvalsNeeded?: number;
  incidentRequired: boolean;
  breakGlass: boolean;
  disabled: boolean;
}

/** Validates the fields and separates settings from secrets. `kept` holds the stored secrets, for those left out. */
export function parseRole(context: AppContext, fields: RoleFields, kept: Settings) {
  const { slug, groups, defaultDuration, maxDuration } = fields;
  if (slug.length > longestSlug || !slugPattern.test(slug))
    throw new InvalidInput(
      "slug",
      `The slug must be 1 to ${longestSlug} lower-case letters and digits, with single hyphens between them`,
    );
  for (const [field, seconds] of Object.entries({
    default_duration: defaultDuration,
    max_duration: maxDuration,
  }))
    if (!Number.isInteger(seconds) || seconds < 60 || seconds > longestSeconds)
      throw new InvalidInput(field, `The field ${field} must be from 60 to ${longestSeconds} seconds`);
  if (defaultDuration > maxDuration)
    throw new InvalidInput("default_duration", "The default duration exceeds max_duration");
  if (fields.breakGlass && fields.approval === "none")
    throw new InvalidInput("break_glass", "Break-glass access requires an approval other than none");
  if (fields.approval === "commander" && !fields.incidentRequired)
    throw new InvalidInput("incident_required", "Approval by the commander requires incident_required");
  for (const group of groups) parseText("groups", group, 200);
  const { approverGroups = [], approvalsNeeded = 1 } = fields;
  for (const group of approverGroups) parseText("approver_groups", group, 200);
  if (fields.approval === "group" && (approverGroups.length === 0 || approverGroups.includes("*")))
    throw new InvalidInput(
      "approver_groups",
      "Approval by group requires approver_groups: the names of groups, without *",
    );
  if (fields.approval !== "group" && approverGroups.length > 0)
    throw new InvalidInput("approver_groups", "The field approver_groups requires approval: group");
  if (approvalsNeeded < 1 || approvalsNeeded > mostApprovals)
    throw new InvalidInput(
      "approvals_needed",
      `The field approvals_needed must be from 1 to ${mostApprovals}`,
    );
  if (fields.approval === "none" && approvalsNeeded > 1)
    throw new InvalidInput("approvals_needed", "Approvals are needed only with an approval other than none");
  const plugin = pluginOf(context, fields.plugin);
  const { settings, secrets } = parseSettings(plugin, fields.settings, kept);
  return {
    values: {
      slug,
      description: parseText("description", fields.description, 500),
      pluginSlug: plugin.slug,
      settings,
      groups: namesOf(groups),
      defaultDuration,
      maxDuration,
      approval: fields.approval,
      approverGroups: namesOf(approverGroups),
      approvalsNeeded,
      incidentRequired: fields.incidentRequired,
      breakGlass: fields.breakGlass,
    },
    secrets,
  };
}

function parseSettings(plugin: ActivePlugin<"credential">, given: Settings, kept: Settings) {
  const settings: Settings = {};
  const secrets: Settings = {};
  const wanted = new Map(Object.entries(given));
  for (const { key, schema, about, secret } of plugin.roleSettings ?? []) {
    const field = `settings.${key}`;
    const value = wanted.get(key) ?? (secret ? kept[key] : undefined) ?? (schema.default as undefined);
    wanted.delete(key);
    if (value === undefined) {
      if (OptionalKind in schema) continue;
      throw new InvalidInput(field, `The field ${field} is missing: ${about}`);
    }
    if (typeof value === "string") parseText(field, value, 20_000);
    if (!Value.Check(schema, value)) throw new InvalidInput(field, `The field ${field} is invalid: ${about}`);
    (secret ? secrets : settings)[key] = value;
  }
  for (const key of wanted.keys())
    throw new InvalidInput("settings", `The plugin ${plugin.slug} has no setting named ${key.slice(0, 60)}`);
  return { settings, secrets };
}

/** Spelled as those of users (server/sso/claims.ts), each once. */
const namesOf = (groups: readonly string[]) => [...new Set(groups.map((group) => group.normalize("NFC")))];
