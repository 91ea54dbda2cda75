import { clientArgs } from "../client/args.ts";
import { defineCommand } from "../command.ts";
import { UsageError } from "../errors.ts";
import { printJson } from "../text.ts";

export default defineCommand({
  summary: "Print the access token, for scripts",
  args: clientArgs,
  examples: ['curl -H "Authorization: Bearer $(svc token)" http://127.0.0.1:8000/whoami'],
  notes: ["Does not contact the server. If the token has expired, the exit code is 4."],
  async run({ json }, io) {
    const { currentSession } = await import("../client/session.ts");
    const { server, token, user } = await currentSession(io);
    if (token === undefined) throw new UsageError("a client certificate has no token");
    if (!json) {
      io.stdout.write(`${token.token}\n`);
      return;
    }
    const data = { server: server.base, user, token: token.token, expires_at: token.expiresAt.toISOString() };
    printJson(io, data);
  },
});
