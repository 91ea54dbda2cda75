import { InvalidInput, SvcError } from "../../../platform/errors.ts";
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
    const { parseRoleFile } = await import("../../../core/access/role_file.ts");
    const roles = inputOf(() => parseRoleFile(text, file));
    const done: { role: string; did: "created" | "updated" }[] = [];
    await AccessClient.within(io, async (client) => {
      try {
        for (const role of roles) {
          const { slug } = role;
          const did = await applyRole(client, role).catch((error: unknown) => {
            if (!(error instanceof SvcError)) throw error;
            throw new SvcError(error.code, `${slug}: ${error.detail}`, { cause: error });
          });
          done.push({ role: slug, did });
          // At once, because a later role may fail.
          if (!json) io.stdout.write(`${slug} ${did}\n`);
        }
      } finally {
        // Includes the roles that were applied before another one failed.
        if (json) printJson(io, { items: done });
      }
    });
  },
});

async function applyRole(
  client: AccessClient,
  role: Record<string, unknown> & { slug: string },
): Promise<"created" | "updated"> {
  const { slug } = role;
  const known = await client.role(slug).catch((error: { code?: string }) => {
    if (error.code === "not_found") return undefined;
    throw error;
  });
  if (known === undefined) await client.call("POST", "/access/roles/", role);
  else await client.call("PUT", `/access/roles/${slug}`, { ...role, version: known.version });
  return known === undefined ? "created" : "updated";
}

/** @throws UsageError */
function inputOf<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof InvalidInput ? new UsageError(error.detail) : error;
  }
}
