import { defaultPassword, trialUsers } from "../../trial/idp/users.ts";
import { defineCommand } from "../command.ts";
import { parsePort } from "../up/ports.ts";
import { assertSourceTree } from "../up/source_tree.ts";

const users = trialUsers.map(({ email, groups }) =>
  groups.length > 0 ? `${email} (group ${groups})` : email,
);

export default defineCommand({
  summary: "Start a local trial: database, server, worker and sign-in provider",
  args: {
    port: {
      type: "custom",
      metavar: "PORT",
      default: 8000,
      description: "Port of the server; 0 for any free port",
      parse: parsePort,
    },
    host: {
      type: "string",
      metavar: "ADDRESS",
      default: "127.0.0.1",
      description: "Address of the server; with the trial sign-in provider, loopback only",
    },
    idpPort: {
      type: "custom",
      metavar: "PORT",
      default: 8001,
      description: "Port of the trial sign-in provider, on 127.0.0.1",
      parse: parsePort,
    },
    databasePort: {
      type: "custom",
      metavar: "PORT",
      default: 0,
      description: "Port of PostgreSQL, on 127.0.0.1; 0 for any free port",
      parse: parsePort,
    },
    mtls: {
      type: "boolean",
      description: "Also serve clients with certificates (mutual TLS), on a separate port",
    },
    mtlsPort: {
      type: "custom",
      metavar: "PORT",
      default: 8443,
      description: "Port for --mtls; 0 for any free port",
      parse: parsePort,
    },
    dataDir: {
      type: "string",
      metavar: "DIRECTORY",
      description: "Data directory (default: .svc in the clone)",
    },
    example: {
      type: "boolean",
      negatable: true,
      default: true,
      description: "Load example data into a new database",
    },
    verbose: { type: "boolean", description: "Show all output of the processes, not only errors" },
  },
  examples: [
    "npm start",
    "npm start -- --port 9000 --idp-port 9001",
    "npm start -- --mtls",
    "SVC_OIDC_ISSUER=https://id.example.com npx svc up",
  ],
  notes: [
    "Starts PostgreSQL (from npm), upgrades its schema, and starts the trial sign-in provider, the server and a worker. Then it prints the address and the next command.",
    `Trial users: ${users.join(", ")}. Their password is ${defaultPassword}, or the value of SVC_TRIAL_PASSWORD.`,
    ".svc in the clone keeps the database (postgres/), key_secret, and the logs of this start and the previous one (log/). To start over, stop svc and delete .svc.",
    "The first start loads example data: three months of incidents of a fictional company. To start without it, stop svc, delete .svc, and use --no-example. The database of SVC_DATABASE_URL gets no example data.",
    "--mtls creates a certificate for localhost, and its authority in .svc/mtls/. Clients must trust .svc/mtls/ca.pem: set NODE_EXTRA_CA_CERTS for svc, or --cacert for curl.",
    "The environment, and .env in the clone, take precedence: with SVC_DATABASE_URL, svc starts no PostgreSQL; with SVC_OIDC_ISSUER, no trial sign-in provider.",
    "Ctrl-C (or SIGTERM) stops all processes within a few seconds. They also stop if svc is killed. Only one trial can run in a data directory.",
  ],
  async run({ mtls, mtlsPort, verbose = false, ...options }, io) {
    assertSourceTree("svc up");
    const { up } = await import("../up/up.ts");
    await up({ ...options, mtlsPort: mtls ? mtlsPort : undefined, verbose }, io);
  },
});
