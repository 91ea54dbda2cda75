import { AccessClient } from "../../access/access.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "Create or replace access roles from a file",
  args: {
    file: {
      type: "string",
      short: "f",
      metavar: "FILE",
      required: true,
      description: "A role or a list of roles in YAML or JSON; - for standard input",
    },
    ...clientArgs,
  },
  examples: ["svc access apply -f orders-db.yaml"],
  notes: [
    "For admins. Omitted fields get their defaults. An omitted secret of an existing role keeps its value. docs/credentials.md and the pages that it lists have examples.",
  ],
  async run({ file, json }, io) {
    const text = await (file === "-" ? Bun.stdin.text() : Bun.file(file).text()).catch((error: Error) => {
      throw new UsageError(`cannot read ${file}: ${(error as { code?: string }).code ?? error.message}`);
    });
    const roles = rolesIn(text, file);
    const done: { role: string; did: "created" | "updated" }[] = [];
    await AccessClient.within(io, async (client) => {
      for (const role of roles) {
        const slug = String(role.slug);
        const known = await client.role(slug).catch((error: { code?: string }) => {
          if (error.code === "not_found") return undefined;
          throw error;
        });
        const fields = { ...defaults, ...role };
        if (known === undefined) await client.call("POST", "/access/roles/", fields);
        else await client.call("PUT", `/access/roles/${slug}`, { ...fields, version: known.version });
        const did = known === undefined ? "created" : "updated";
        done.push({ role: slug, did });
        // At once, because a later role may be refused.
        if (!json) io.stdout.write(`${slug} ${did}\n`);
      }
    });
    if (json) printJson(io, { items: done });
  },
});

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

/** @throws UsageError */
function rolesIn(text: string, file: string): Record<string, unknown>[] {
  let value: unknown;
  try {
    value = Bun.YAML.parse(text);
  } catch (error) {
    throw new UsageError(`${file} is neither YAML nor JSON: ${(error as Error).message.slice(0, 200)}`);
  }
  const roles: unknown[] = Array.isArray(value) ? value : [value];
  for (const role of roles)
    if (typeof (role as { slug?: unknown } | null)?.slug !== "string")
      throw new UsageError(`${file}: every role needs a slug`);
  return roles as Record<string, unknown>[];
}
