import { AccessClient } from "../../../access/access.ts";
import { clientArgs } from "../../../client/args.ts";
import { defineCommand } from "../../../command.ts";
import { jsonText } from "../../../text.ts";
import { localTime } from "../../../when.ts";

export default defineCommand({
  summary: "Replace the key of a certificate authority",
  args: {
    kind: { type: "positional", metavar: "KIND", description: "ssh or x509" },
    name: { type: "positional", metavar: "NAME", description: "The name of the authority" },
    revoke: {
      type: "boolean",
      description: "Revoke the previous keys and everything they signed, if they may have leaked",
    },
    ...clientArgs,
  },
  examples: ["svc access authority rotate ssh default", "svc access authority rotate ssh default --revoke"],
  notes: [
    "The next key starts signing after a day, so that servers can fetch it first. The previous key stays trusted until its last certificate expires.",
    "With --revoke, the next key signs immediately. Servers accept its certificates and refuse those of the previous keys once they have fetched the new keys and the revocation list.",
  ],
  async run({ kind, name, revoke, json }, io) {
    type Key = { fingerprint: string; active_at: string };
    const key = await AccessClient.within(io, (client) =>
      client.call<Key>("POST", "/access/authority_keys/", { kind, name, revoke: revoke === true }),
    );
    const from = revoke ? "now" : localTime(key.active_at);
    io.stdout.write(json ? `${jsonText(key)}\n` : `${key.fingerprint} signs from ${from}\n`);
  },
});
