import { clientArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";
import { printJson } from "../../text.ts";

export default defineCommand({
  summary: "Revoke client certificates",
  args: {
    serials: {
      type: "positional",
      required: false,
      multiple: true,
      metavar: "SERIAL",
      description: "The serial numbers that svc certificates list shows",
    },
    user: { type: "string", metavar: "USER", description: "All valid certificates of this user" },
    ...clientArgs,
  },
  examples: ["svc certificates revoke 4f2a91c07be3d815", "svc certificates revoke --user dana@example.com"],
  notes: [
    "Ends all certificates of the same sign-in, and the access that was obtained with them. Only admins can revoke other users' certificates.",
    "svc logout revokes the certificate of this machine.",
  ],
  async run({ serials = [], user, json }, io) {
    if ((serials.length === 0) === (user === undefined))
      throw new UsageError("specify serial numbers, or --user");
    const { revokeCertificates } = await import("../../client/certificates.ts");
    const revoked = await revokeCertificates(io, { serials, user });
    if (json) printJson(io, { revoked });
    else if (user !== undefined) io.stdout.write(`Revoked ${revoked.length}\n`);
    else for (const serial of revoked) io.stdout.write(`Revoked ${serial}\n`);
  },
});
