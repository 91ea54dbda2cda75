import { clientArgs } from "../client/args.ts";
import { defineCommand } from "../command.ts";
import { jsonText, printable, printJson } from "../text.ts";
import { localTime } from "../when.ts";

export default defineCommand({
  summary: "Show the signed-in user and when the sign-in expires",
  args: clientArgs,
  examples: ["svc whoami", "svc whoami --json", "svc --certificate whoami"],
  notes: [
    "Asks the server, so it detects a revoked token. SVC_TOKEN takes precedence over the stored token.",
  ],
  async run({ json }, io) {
    const [{ whoami }, { readUser }, { currentSession, renewInTime }] = await Promise.all([
      import("../client/api.ts"),
      import("../client/answer.ts"),
      import("../client/session.ts"),
    ]);
    const session = await currentSession(io);
    const { server } = session;
    const answer = await io.interruptible((signal) => whoami(io, session, signal));
    await renewInTime(session, io);
    if (json) return printJson(io, { server: server.base, ...answer });
    const groups = answer.groups.map((group) => readUser(group) ?? printable(jsonText(group)));
    const rows = [
      ["User", answer.user],
      ["Groups", groups.join(", ") || "none"],
      ["Admin", answer.admin ? "yes" : "no"],
      ["Server", server.base],
      ["Until", localTime(answer.expires_at)],
    ] as const;
    for (const [name, value] of rows) io.stdout.write(`${name.padEnd(8)}${value}\n`);
  },
});
