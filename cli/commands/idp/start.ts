import { ConfigurationError } from "../../../platform/errors.ts";
import { defaultPassword } from "../../../trial/idp/users.ts";
import { defineCommand } from "../../command.ts";
import { parsePort } from "../../up/ports.ts";
import { assertSourceTree } from "../../up/source_tree.ts";

export default defineCommand({
  summary: "Start the trial sign-in provider",
  args: {
    host: {
      type: "string",
      metavar: "ADDRESS",
      default: "127.0.0.1",
      description: "Address to listen on; other than loopback only with SVC_TRIAL_PASSWORD",
    },
    port: {
      type: "custom",
      metavar: "PORT",
      default: 8001,
      description: "Port to listen on",
      parse: parsePort,
    },
    issuer: {
      type: "string",
      metavar: "URL",
      description: "Address for browsers and the server (default: http://HOST:PORT)",
    },
    publicUrl: {
      type: "string",
      metavar: "URL",
      default: "http://127.0.0.1:8000",
      description: "Address of the service, to return to after sign-in",
    },
  },
  examples: ["SVC_OIDC_CLIENT_SECRET=... svc idp start --public-url http://127.0.0.1:8000"],
  notes: [
    "For trials and tests only: its users are fictional. `svc up` starts it, `svc server start` does not.",
    "SVC_OIDC_CLIENT_SECRET must be the same as for the server.",
    `SVC_TRIAL_PASSWORD sets the password of all users (default: ${defaultPassword}).`,
  ],
  async run({ host, port, issuer, publicUrl }, io) {
    assertSourceTree("svc idp start");
    const clientSecret = io.env.SVC_OIDC_CLIENT_SECRET;
    if (!clientSecret)
      throw new ConfigurationError(["SVC_OIDC_CLIENT_SECRET is not set: use any long random text"]);
    const urls = { "--public-url": publicUrl, ...(issuer ? { "--issuer": issuer } : {}) };
    for (const [name, url] of Object.entries(urls)) {
      if (!URL.canParse(url) || !/^https?:/.test(url)) {
        throw new ConfigurationError([`${name}: "${url}" is not an http(s) address`]);
      }
    }
    const { startIdp } = await import("../../../trial/idp/main.ts");
    // A dependency of oidc-provider calls a deprecated function of Node, which is of no use to the user.
    process.noDeprecation = true;
    const idp = await startIdp({
      host,
      port,
      issuer,
      publicUrl,
      clientSecret,
      password: io.env.SVC_TRIAL_PASSWORD || undefined,
      log: (line) => io.stderr.write(`${line}\n`),
    });
    io.stderr.write(`svc: trial sign-in provider on ${idp.issuer}\n`);
    await io.interruptible(() => new Promise<never>(() => {})).finally(() => idp.stop());
  },
});
