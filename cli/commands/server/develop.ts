import { defineCommand } from "../../command.ts";
import { hasColours } from "../../screen.ts";
import { logLevel, whole } from "../../start_options.ts";
import { assertFree, chooseFreePort, parsePort } from "../../up/ports.ts";
import { assertSourceTree } from "../../up/source_tree.ts";

export default defineCommand({
  summary: "Start the server and restart it on changes",
  args: {
    host: { type: "string", metavar: "TEXT", default: "127.0.0.1", description: "Address to listen on" },
    port: {
      type: "custom",
      metavar: "INTEGER",
      default: 8000,
      description: "Port to listen on; 0 for any free port",
      parse: parsePort,
    },
    logLevel,
    timeoutStart: {
      type: "custom",
      metavar: "SECONDS",
      default: 30,
      description: "Stop a new process that is not ready by then",
      parse: whole(1, 3600),
    },
  },
  examples: ["svc server develop --log-level debug"],
  notes: [
    "Restarts when a file in server, core, platform, plugins or drizzle, or .env, changes. The port stays open: the old process answers until the new one does. If that fails to start, a page shows the error.",
    "Needs the same variables as `svc server start`, such as SVC_DATABASE_URL.",
  ],
  async run({ host, port, logLevel: chosenLevel, timeoutStart }, io) {
    assertSourceTree("svc server develop");
    const [{ develop }, { readEnvironment }, { providersOf }] = await Promise.all([
      import("../../../server/process/develop.ts"),
      import("../../../platform/environment.ts"),
      import("../../../platform/telemetry/providers.ts"),
    ]);
    if (providersOf(readEnvironment(io.env).METRIC_PROVIDERS ?? "").has("prometheus"))
      io.stderr.write("svc: svc server develop does not serve /metrics; use svc server start or svc up\n");
    await assertFree(host, port, "--port");
    const chosen = port || (await chooseFreePort(host));
    const level = chosenLevel === undefined ? [] : ["--log-level", chosenLevel];
    const place = ["--host", host, "--port", String(chosen), ...level];
    const rest = ["--timeout-graceful-shutdown", "1", "--supervised"];
    const args = ["server", "start", "server/main:app", ...place, ...rest];
    const colour = hasColours(io.stderr, io.env);
    await develop({ args, host, port: chosen, colour, startSeconds: timeoutStart });
  },
});
