import { defaultPassword } from "../../../trial/idp/users.ts";
import { defineCommand } from "../../command.ts";
import { parsePort } from "../../up/ports.ts";
import { assertSourceTree } from "../../up/source_tree.ts";

export default defineCommand({
  args: {
    host: {
      type: "string",
      metavar: "ADDRESS",
      default: "127.0.0.1",
      description: "Address to listen on; beyond loopback only with SVC_TRIAL_PASSWORD",
    },
    port: {
      type: "string",
      metavar: "PORT",
      default: "8001",
      description: "Port to listen on",
      parse: parsePort,
    },
    issuer: {
      type: "string",
      metavar: "URL",
      description: "The address by which browsers and the server know it (otherwise http://<host>:<port>)",
    },
    publicUrl: {
      type: "string",
      metavar: "URL",
      default: "http://127.0.0.1:8000",
      description: "The address of the service, to which it sends people back",
    },
  },
  examples: ["SVC_OIDC_CLIENT_SECRET=... svc idp start --public-url http://127.0.0.1:8000"],
  notes: [
    "For trials and tests only: its users are made up. `svc up` starts it; `svc server start` never does.",
    "SVC_OIDC_CLIENT_SECRET is the secret that the server shows to it, the same there and here.",
    `SVC_TRIAL_PASSWORD is the password of all its users, ${defaultPassword} unless set.`,
  ],
  async run({ host, port, issuer, publicUrl }, io) {
    assertSourceTree("svc idp start");
    const [{ startIdp }, { ConfigurationError }] = await Promise.all([
      import("../../../trial/idp/main.ts"),
      import("../../../platform/errors.ts"),
    ]);
    const clientSecret = io.env.SVC_OIDC_CLIENT_SECRET;
    if (!clientSecret)
      throw new ConfigurationError(["SVC_OIDC_CLIENT_SECRET is not set: any long random text will do"]);
    const urls = { "--public-url": publicUrl, ...(issuer ? { "--issuer": issuer } : {}) };
    for (const [name, url] of Object.entries(urls)) {
      if (!URL.canParse(url) || !/^https?:/.test(url)) {
        throw new ConfigurationError([`${name}: "${url}" is not an http(s) address`]);
      }
    }
    // A dependency of oidc-provider calls a function that Node gave up; not a thing for the person at the terminal.
    process.noDeprecation = true;
    const idp = await startIdp({
      ...{ host, port: Number(port), issuer, publicUrl, clientSecret },
      password: io.env.SVC_TRIAL_PASSWORD || undefined,
      log: (line) => io.stderr.write(`${line}\n`),
    });
    io.stderr.write(`svc: trial sign-in provider on ${idp.issuer}\n`);
    await io.interruptible(() => new Promise<never>(() => {})).finally(() => idp.stop());
  },
});
