import type { Person } from "../http/people.ts";

/** What most access roles of tests have in common, as an admin sends it. */
export const usualRole = {
  groups: ["oncall"],
  default_duration: 3600,
  max_duration: 7200,
  approval: "none",
  incident_required: false,
  break_glass: false,
  disabled: false,
};

let made = 0;

/** Creates such a role as an admin. @returns its slug */
export async function createUsualRole(
  admin: Person,
  fields: { plugin: string; settings: object; [field: string]: unknown },
): Promise<string> {
  const slug = `${fields.plugin}-${++made}`;
  const role = { ...usualRole, slug, description: "A role", ...fields };
  const { http, body } = await admin.call("POST", "/access/roles/", role);
  if (http !== 201) throw new Error(`POST /access/roles/: ${http} ${JSON.stringify(body)}`);
  return body.slug;
}
