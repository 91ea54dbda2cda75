import { clientArgs } from "../client/args.ts";
import { localTime } from "../client/when.ts";
import { defineCommand } from "../command.ts";

export default defineCommand({
  args: {
    user: {
      type: "positional",
      required: false,
      description: "Who to sign in as (otherwise the last user of that server, or your name on this machine)",
    },
    ...clientArgs,
    browser: {
      type: "boolean",
      negatable: true,
      description:
        "Open a browser or not, whatever this looks like (otherwise not over SSH or without a display)",
    },
    force: { type: "boolean", description: "Sign in again although the stored token is still good" },
    keychain: { type: "boolean", description: "Keep the token in the system's keychain, not in the file" },
  },
  examples: [
    "svc login alice@example.com",
    "svc login --server https://svc.example.com",
    "svc login --no-browser          (open the address on another machine)",
  ],
  notes: [
    "The token is kept in $XDG_CONFIG_HOME/svc/credentials.json (~/.config/svc), readable by you alone.",
    "BROWSER names the command that opens the address. HTTP_PROXY, HTTPS_PROXY, NO_PROXY, NODE_EXTRA_CA_CERTS and SSL_CERT_FILE work as usual. Ctrl-C gives up.",
  ],
  async run({ json, ...options }, io) {
    const { login } = await import("../client/login.ts");
    const { server, user, expiresAt, storage, reused } = await login(options, io);
    if (json) {
      const data = { server, user, expires_at: expiresAt.toISOString(), storage, reused };
      io.stdout.write(`${JSON.stringify(data)}\n`);
      return;
    }
    const until = `as ${user} until ${localTime(expiresAt)}`;
    io.stdout.write(
      reused
        ? `Already signed in to ${server} ${until}; --force signs in again\n`
        : `Signed in to ${server} ${until}\n`,
    );
  },
});
