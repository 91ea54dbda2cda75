import { wantedArgs } from "../../access/access.ts";
import { runWithAccess } from "../../access/run.ts";
import { serverArgs } from "../../client/args.ts";
import { defineCommand } from "../../command.ts";

export default defineCommand({
  summary: "Run a command with access that ends when the command exits",
  args: {
    role: { type: "positional", metavar: "ROLE", description: "The access role" },
    ...wantedArgs,
    ...serverArgs,
  },
  rest: "COMMAND...",
  examples: [
    "svc access run orders-db -- psql -c 'select current_user'",
    'svc access run orders-db -i INC-44 -r "Find the stuck order" -- psql',
    "svc access run web-hosts -- ssh deploy@web1.example.com",
  ],
  notes: [
    "The credential is in the environment of the command: for PostgreSQL, in PGHOST, PGPORT, PGDATABASE, PGUSER, PGPASSWORD and DATABASE_URL. It is revoked when the command exits.",
    "A PostgreSQL role lasts 15 minutes and is renewed while the command runs, until --duration or the approved time is over, or else for as long as the role allows. If svc is killed, or cannot reach the server for longer than that, the role and its sessions end.",
    "For SSH certificates, a separate ssh-agent holds the key and the certificate, and ssh, scp, git and rsync find it by SSH_AUTH_SOCK. The key is never written to a file, and the agent ends with the command.",
    "For X.509 certificates, SVC_ACCESS_CERTIFICATE and SVC_ACCESS_KEY name private files, which are deleted when the command exits.",
    "For Kubernetes, KUBECONFIG names a private file with the cluster and the token, which is deleted when the command exits.",
    "The exit code is that of the command, 127 if it does not exist, and 126 if it cannot be executed.",
  ],
  run: ({ role, ...wanted }, io, command) => runWithAccess(io, { role, command, wanted }),
});
