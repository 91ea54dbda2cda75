import { defineCommand } from "../../command.ts";
import { whole } from "../../start_options.ts";
import { assertFree, chooseFreePort, parsePort } from "../../up/ports.ts";

export default defineCommand({
  args: {
    host: { type: "string", metavar: "TEXT", default: "127.0.0.1", description: "Address to listen on" },
    port: {
      type: "custom",
      metavar: "INTEGER",
      default: 8000,
      description: "Port to listen on; 0: any free one",
      parse: parsePort,
    },
    logLevel: {
      type: "enum",
      metavar: "LEVEL",
      choices: ["trace", "debug", "info", "warn", "error", "fatal"],
      description: "The least severe log line that is written (otherwise SVC_LOG_LEVEL)",
    },
    timeoutStart: {
      type: "custom",
      metavar: "SECONDS",
      default: 30,
      description: "End a new process that does not answer for so long",
      parse: whole(1, 3600),
    },
  },
  examples: ["svc server develop --log-level debug"],
  notes: [
    "Starts again when something changes in server, core, platform, plugins, drizzle or .env. The port stays open: the old process answers until the new one does, and where that does not come up, a page tells why.",
    "It needs the variables that `svc server start` needs, SVC_DATABASE_URL among them.",
  ],
  async run({ host, port, logLevel, timeoutStart }, io) {
    const [{ assertSourceTree }, { develop }, { readEnvironment }, { providersOf }] = await Promise.all([
      import("../../up/source_tree.ts"),
      import("../../../server/process/develop.ts"),
      import("../../../platform/environment.ts"),
      import("../../../platform/telemetry/providers.ts"),
    ]);
    assertSourceTree("svc server develop");
    if (providersOf(readEnvironment(io.env).METRIC_PROVIDERS ?? "").has("prometheus"))
      io.stderr.write("svc: /metrics is not served here; svc server start and svc up serve it\n");
    await assertFree(host, port, "the server", "--port");
    const chosen = port || (await chooseFreePort(host));
    const level = logLevel === undefined ? [] : ["--log-level", logLevel];
    const place = ["--host", host, "--port", String(chosen), ...level];
    const args = ["server", "start", "server/main:app", ...place, "--timeout-graceful-shutdown", "1"];
    const colour = io.stderr.isTTY === true && !io.env.NO_COLOR;
    const supervised = [...args, "--supervised"];
    await develop({ args: supervised, host, port: chosen, colour, startSeconds: timeoutStart });
  },
});
