import { clientArgs } from "../client/args.ts";
import { defineCommand } from "../command.ts";
import { printJson } from "../text.ts";
import { localTime } from "../when.ts";

export default defineCommand({
  summary: "Sign in through the browser",
  args: {
    user: {
      type: "positional",
      required: false,
      description: "User to sign in as (default: the last user of that server, or your name on this machine)",
    },
    ...clientArgs,
    browser: {
      type: "boolean",
      negatable: true,
      description: "Whether to open a browser (default: not over SSH or without a display)",
    },
    force: { type: "boolean", description: "Sign in again, even if the stored token is valid" },
    keychain: {
      type: "boolean",
      description: "Store the token, and the key of a certificate, in the system's keychain instead of files",
    },
    certificate: {
      type: "boolean",
      description: "Also get a client certificate for mutual TLS, for svc --certificate and other programs",
    },
  },
  examples: [
    "svc login alice@example.com",
    "svc login --server https://svc.example.com",
    "svc login --no-browser          (to open the address on another machine)",
    "svc login --certificate",
  ],
  notes: [
    "Stores the token in $XDG_CONFIG_HOME/svc/credentials.json (default: ~/.config/svc), which only you can read.",
    "--certificate stores key.pem and certificate.pem in the folder mtls/ next to it. Every command with --certificate renews the certificate in time, until its sign-in ends.",
    "BROWSER sets the command that opens the address. HTTP_PROXY, HTTPS_PROXY, NO_PROXY, NODE_EXTRA_CA_CERTS and SSL_CERT_FILE have their usual meaning.",
  ],
  async run({ json, ...options }, io) {
    const { login } = await import("../login/login.ts");
    const { server, user, expiresAt, storage, reused, certificate } = await login(options, io);
    if (json) {
      const data = { server, user, expires_at: expiresAt.toISOString(), storage, reused, certificate };
      printJson(io, data);
      return;
    }
    const until = `as ${user} until ${localTime(expiresAt)}`;
    io.stdout.write(
      reused
        ? `Already signed in to ${server} ${until}; use --force to sign in again\n`
        : `Signed in to ${server} ${until}\n`,
    );
    if (certificate === undefined) return;
    const valid = (text: string) => localTime(new Date(text));
    io.stdout.write(
      `Certificate: ${certificate.certificate}\n` +
        `Key:         ${certificate.key ?? "in the keychain"}\n` +
        `For ${certificate.url} until ${valid(certificate.expires_at)}, renewed until ${valid(certificate.sign_in_expires_at)}\n`,
    );
  },
});
