import { clientArgs } from "../../../client/args.ts";
import { localTime } from "../../../client/when.ts";
import { defineCommand } from "../../../command.ts";

export default defineCommand({
  summary: "Replace the key of a certificate authority",
  args: {
    kind: { type: "positional", metavar: "KIND", description: "ssh or x509" },
    name: { type: "positional", metavar: "NAME", description: "The name of the authority" },
    revoke: {
      type: "boolean",
      description: "Because somebody else may know it: nothing counts any more that it has signed",
    },
    ...clientArgs,
  },
  examples: ["svc access authority rotate ssh default", "svc access authority rotate ssh default --revoke"],
  notes: [
    "The next key signs after a day, in which hosts fetch its public half. The one before stays trusted until the last certificate that it has signed has expired.",
    "With --revoke the next key signs at once, and hosts refuse the ones before when they have fetched the revocation list. They accept new certificates when they have fetched the public key.",
  ],
  async run({ kind, name, revoke, server, json }, io) {
    const { AccessClient } = await import("../../../client/access.ts");
    type Key = { fingerprint: string; active_at: string };
    const key = await AccessClient.within(io, server, (client) =>
      client.call<Key>("POST", "/access/authority_keys/", { kind, name, revoke: revoke === true }),
    );
    const from = revoke ? "now" : localTime(new Date(key.active_at));
    io.stdout.write(json ? `${JSON.stringify(key)}\n` : `${key.fingerprint} signs from ${from}\n`);
  },
});
