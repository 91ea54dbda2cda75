import { wantedArgs } from "../../client/access.ts";
import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Print a credential for an access role",
  args: {
    role: { type: "positional", metavar: "ROLE", description: "The access role" },
    format: {
      type: "enum",
      choices: ["json", "env", "ssh"],
      default: "json",
      metavar: "FORMAT",
      description: "json, env for a shell, or ssh for files that ssh uses (default: json)",
    },
    ...wantedArgs,
    server: clientArgs.server,
  },
  examples: [
    "svc access get orders-db",
    'eval "$(svc access get orders-db --format env)"',
    "svc access get web-hosts --format ssh",
  ],
  notes: [
    "With ssh, the private key is made on this machine and stays there, in a folder beside the credentials of svc login, and the certificate is written next to it. Asking again renews the certificate for the same key. The command prints what to type.",
    "It ends when it expires or is revoked, also when you sign out, leave the incident, or the incident is closed. svc access run ends it as soon as a command is done, and is the better choice for one.",
  ],
  async run({ role, format, server, ...wanted }, io) {
    if (format === "ssh") {
      const { getSshAccess } = await import("../../client/access_key.ts");
      return getSshAccess(io, { role, server, wanted });
    }
    const [{ AccessClient }, { formatCredential }] = await Promise.all([
      import("../../client/access.ts"),
      import("../../client/access_format.ts"),
    ]);
    const issued = await AccessClient.within(io, server, (client) => client.obtain(role, wanted));
    io.stdout.write(formatCredential(format, issued));
  },
});
