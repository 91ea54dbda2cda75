import { InvalidInput } from "../../platform/errors.ts";

/** The fields of a role that a file leaves out, with the names of the API. */
const defaults = {
  description: "",
  settings: {},
  groups: [],
  default_duration: 3600,
  max_duration: 8 * 3600,
  approval: "admin",
  incident_required: false,
  break_glass: false,
  disabled: false,
};

/**
 * Reads a role or a list of roles in YAML or JSON, and completes them with the defaults. It validates only that each has a slug:
 * the rest is for the schema of the API.
 *
 * @param name of the file, for errors
 * @throws InvalidInput
 */
export function parseRoleFile(text: string, name: string): (Record<string, unknown> & { slug: string })[] {
  let value: unknown;
  try {
    value = Bun.YAML.parse(text);
  } catch (error) {
    throw new InvalidInput(
      "file",
      `${name} is neither YAML nor JSON: ${(error as Error).message.slice(0, 200).replace(/\.$/, "")}`,
    );
  }
  const roles: unknown[] = Array.isArray(value) ? value : [value];
  return roles.map((role) => {
    const { slug } = (role ?? {}) as { slug?: unknown };
    if (typeof slug !== "string") throw new InvalidInput("file", `${name}: every role needs a slug`);
    return { ...defaults, ...(role as object), slug };
  });
}
