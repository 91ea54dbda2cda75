import { clientArgs } from "../client/args.ts";
import { defineCommand } from "../command.ts";
import { printJson } from "../text.ts";

export default defineCommand({
  summary: "Revoke and delete the stored token",
  args: {
    ...clientArgs,
    all: { type: "boolean", description: "Sign out of all servers, and forget the user names" },
  },
  examples: ["svc logout", "svc logout --all"],
  async run({ json, ...options }, io) {
    const { logout } = await import("../login/logout.ts");
    const done = await logout(options, io);
    if (io.env.SVC_TOKEN) io.stderr.write("svc: warning: SVC_TOKEN is still set and was not revoked\n");
    if (json) return printJson(io, done);
    if (done.length === 0) io.stdout.write("Nothing to do: not signed in\n");
    for (const { server, user } of done) io.stdout.write(`Signed out of ${server} as ${user}\n`);
  },
});
