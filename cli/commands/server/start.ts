import { defineCommand } from "../../command.ts";
import { UsageError } from "../../errors.ts";

export default defineCommand({
  args: {
    app: {
      type: "positional",
      description: "The application to serve: <module>:<attribute>",
      parse: application,
    },
    host: { type: "string", metavar: "ADDRESS", default: "127.0.0.1", description: "Address to listen on" },
    port: { type: "string", metavar: "PORT", default: "8000", description: "Port to listen on", parse: port },
    proxyHeaders: {
      type: "boolean",
      description: "Believe X-Forwarded-For and X-Forwarded-Proto of the proxies that are allowed",
    },
    forwardedAllowIps: {
      type: "string",
      metavar: "LIST",
      description:
        "Those proxies: addresses and networks, comma-separated (otherwise SVC_FORWARDED_ALLOW_IPS)",
    },
    logLevel: {
      type: "enum",
      metavar: "LEVEL",
      choices: ["trace", "debug", "info", "warn", "error", "fatal"],
      description: "The least severe log line that is written (otherwise SVC_LOG_LEVEL)",
    },
  },
  examples: ["svc server start server/main:app --host 0.0.0.0 --port 8000 --proxy-headers"],
  async run(options, io) {
    const [{ startServer }, { chooseFreePort }] = await Promise.all([
      import("../../../server/start.ts"),
      import("../../up/ports.ts"),
    ]);
    const { app, host, proxyHeaders = false, forwardedAllowIps, logLevel } = options;
    // Chosen before the application is loaded: its public address holds the port.
    const port = Number(options.port) || (await chooseFreePort(host));
    await startServer({ app, host, port, proxyHeaders, forwardedAllowIps, logLevel }, io.env);
  },
});

function application(text: string): string {
  if (!/^[^:].*:[A-Za-z_$][\w$]*$/.test(text)) throw new UsageError(`"${text}" is not <module>:<attribute>`);
  return text;
}

function port(text: string): number {
  const number = Number(text);
  if (!/^\d{1,5}$/.test(text) || number > 65_535)
    throw new UsageError(`"${text}" is not a port (0 to 65535)`);
  return number;
}
