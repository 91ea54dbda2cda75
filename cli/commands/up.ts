import { defaultPassword, trialUsers } from "../../trial/idp/users.ts";
import { defineCommand } from "../command.ts";
import { parsePort } from "../up/ports.ts";
import { assertSourceTree } from "../up/source_tree.ts";

const users = trialUsers.map(({ email, groups }) =>
  groups.length > 0 ? `${email} (group ${groups})` : email,
);

export default defineCommand({
  args: {
    port: {
      type: "string",
      metavar: "PORT",
      default: "8000",
      description: "Port of the server; 0 takes any free one",
      parse: parsePort,
    },
    host: {
      type: "string",
      metavar: "ADDRESS",
      default: "127.0.0.1",
      description: "Address of the server; only loopback while the trial sign-in provider is on",
    },
    idpPort: {
      type: "string",
      metavar: "PORT",
      default: "8001",
      description: "Port of the trial sign-in provider, on 127.0.0.1",
      parse: parsePort,
    },
    databasePort: {
      type: "string",
      metavar: "PORT",
      default: "0",
      description: "Port of PostgreSQL, on 127.0.0.1; 0 takes any free one",
      parse: parsePort,
    },
    dataDir: {
      type: "string",
      metavar: "DIRECTORY",
      description: "Where everything is kept (otherwise .svc of the clone)",
    },
    example: {
      type: "boolean",
      negatable: true,
      default: true,
      description: "Load example data into a database that is new",
    },
    verbose: { type: "boolean", description: "Show every line that the parts write, not only their errors" },
  },
  examples: [
    "npm start",
    "npm start -- --port 9000 --idp-port 9001",
    "SVC_OIDC_ISSUER=https://id.example.com npx svc up",
  ],
  notes: [
    "Starts, as one tree of processes: PostgreSQL from npm (its schema is brought to the newest revision), the trial sign-in provider, the server, and a worker for the schedule. Ends by printing the address and what to type next.",
    `Trial users: ${users.join(", ")}. The password of each is ${defaultPassword}; SVC_TRIAL_PASSWORD sets another one.`,
    "Kept between starts, in .svc of the clone: postgres/ (the database), key_secret, log/ (of each part, this start and the one before). To begin anew, stop it and remove .svc.",
    "The first start loads example data into its new database: three months of an imaginary company's incidents. To begin without, stop it, remove .svc, and start with --no-example. A database that SVC_DATABASE_URL names gets none.",
    "What the environment, or a .env in the clone, sets wins: with SVC_DATABASE_URL no PostgreSQL is started, with SVC_OIDC_ISSUER no trial sign-in provider.",
    "Ctrl-C (or SIGTERM) ends every process in a few seconds. If it is killed, its processes end too, and the next start is as any other. A second start says that one runs, and changes nothing.",
  ],
  async run(options, io) {
    assertSourceTree("svc up");
    const { up } = await import("../up/up.ts");
    const { host, dataDir, verbose = false, example = true } = options;
    const [port, idpPort, databasePort] = [options.port, options.idpPort, options.databasePort].map(Number);
    await up(
      { host, port: port!, idpPort: idpPort!, databasePort: databasePort!, dataDir, verbose, example },
      io.env,
      io,
    );
  },
});
