import type { Static } from "elysia";
import type { keyView } from "../../../../server/authority/model.ts";
import { AccessClient } from "../../../access/access.ts";
import { clientArgs } from "../../../client/args.ts";
import { defineCommand } from "../../../command.ts";
import { printTable } from "../../../table.ts";
import { printJson } from "../../../text.ts";
import { localTime } from "../../../when.ts";

export default defineCommand({
  summary: "List the keys of the certificate authorities",
  args: clientArgs,
  examples: ["svc access authority list"],
  notes: ["For admins. The public keys do not require a sign-in: see docs/credentials-ssh.md."],
  async run({ json }, io) {
    const keys = await AccessClient.within(io, (client) =>
      client.list<Static<typeof keyView>>("/access/authority_keys/"),
    );
    if (json) return printJson(io, { items: keys });
    const rows = keys.map((key) => [
      key.kind,
      key.name,
      key.fingerprint,
      localTime(key.active_at),
      key.expires_at === null ? "" : localTime(key.expires_at),
      key.revoked_at === null ? "" : "revoked",
    ]);
    const columns = [
      { header: "Kind", leaveOut: 3 },
      { header: "Name", leaveOut: 5 },
      "Fingerprint",
      { header: "Signs From", leaveOut: 2 },
      { header: "Trusted Until", leaveOut: 1 },
      { header: "State", leaveOut: 4 },
    ];
    printTable(io, columns, rows);
  },
});
