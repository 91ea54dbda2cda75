import { AccessClient, type Issued, wantedArgs } from "../../access/access.ts";
import { accountOf, cachedCredential } from "../../access/cache.ts";
import { cachedFormats, formatCredential } from "../../access/format.ts";
import { getCertificate } from "../../access/key.ts";
import { serverArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";
import { writeOut } from "../../screen.ts";

export default defineCommand({
  summary: "Print a credential for an access role",
  args: {
    role: { type: "positional", metavar: "ROLE", description: "The access role" },
    format: {
      type: "enum",
      choices: ["json", "env", "token", "aws", "ssh", "x509", "kube"],
      default: "json",
      metavar: "FORMAT",
      description:
        "env for a shell; token for the token alone; aws for credential_process; ssh or x509 for a key and a certificate in files; kube for kubectl",
    },
    ...wantedArgs,
    ...serverArgs,
  },
  examples: [
    "svc access get orders-db",
    'eval "$(svc access get orders-db --format env)"',
    "svc access get aws-deploy --format aws",
    "svc access get web-hosts --format ssh",
  ],
  notes: [
    "With ssh and x509, the private key is generated on this machine and never leaves it. It is stored with the credentials of svc login, and the certificate next to it. The command prints what to type. Running it again renews the certificate for the same key.",
    "With aws, it prints the output of a credential_process for ~/.aws/config; with kube, an ExecCredential for the exec section of a kubeconfig. Tools run these each time they start, so the credential is cached in a private file until shortly before it expires (ten minutes for AWS, one for kubectl) or you sign out.",
    "The credential ends when it expires or is revoked, when you sign out or leave the incident, or when the incident is closed. For a single command, prefer svc access run, which revokes it when the command exits, and soon after if svc is killed.",
  ],
  async run({ role, format, ...wanted }, io) {
    if (format === "ssh" || format === "x509") return getCertificate(io, format, { role, wanted });
    const print = (issued: Issued) => formatCredential(format, issued, io.env);
    /** @param use what must succeed, or else the access is revoked */
    const obtain = (use: (issued: Issued) => unknown) =>
      AccessClient.within(io, async (client) => {
        const issued = await client.obtain(role, wanted);
        await client.use(issued, () => use(issued));
        return issued;
      });
    const margin = cachedFormats[format];
    const account = margin && accountOf(io);
    if (!account) {
      await obtain((issued) => writeOut(io.stdout, print(issued)));
      return;
    }
    const { incident, duration } = wanted;
    const key = { ...account, role, incident, duration };
    // A format that does not support the credential fails before it is cached.
    io.stdout.write(print(await cachedCredential(io, key, margin, () => obtain(print))));
  },
});
