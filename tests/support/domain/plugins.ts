import { type Config, readConfig } from "../../../core/config.ts";
import type { Context } from "../../../core/context.ts";
import { incidentFacts } from "../../../core/incident/incident/facts.ts";
import { choosePlugins, type Plugins } from "../../../core/plugin/choose.ts";
import { createRegistry } from "../../../core/plugin/registry.ts";
import type { IncidentFacts } from "../../../core/plugin.ts";
import { openDatabase } from "../../../drizzle/client.ts";
import type { Environment } from "../../../platform/variable.ts";
import { builtinPlugins } from "../../../plugins/builtin.ts";
import { TestClock } from "../clock.ts";
import { createTestDatabase } from "../database/database.ts";
import { recordingLog } from "../log.ts";

/** Disables the default plugins. */
export const noPlugins: Environment = {
  SVC_PLUGIN_DOCUMENT_RESOLVER: "none",
  SVC_PLUGIN_PARTICIPANT: "none",
  SVC_PLUGIN_DOCUMENT: "none",
  SVC_PLUGIN_CONVERSATION: "none",
  SVC_PLUGIN_PARTICIPANT_GROUP: "none",
  SVC_PLUGIN_CREDENTIAL: "none",
};

export interface PluginTest {
  context: Context & { clock: TestClock };
  plugins: Plugins;
  /** All log lines. */
  logged: string[];
  factsOf(incidentId: number): Promise<IncidentFacts>;
  /** Chooses plugins with other settings on the same database. */
  choose(environment: Environment): Promise<Plugins>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts the built-in plugins on a new database. */
export async function startPluginTest(environment: Environment = {}): Promise<PluginTest> {
  const database = await createTestDatabase();
  const { db, close } = openDatabase(database.url, 5);
  const clock = new TestClock();
  const { log, logged } = recordingLog();
  const config: Config = { ...readConfig(environment), domain: "example.com" };
  const context = { db, clock, config, log };
  const registry = createRegistry([{ origin: "svc", exported: builtinPlugins, builtin: true }]);
  const choose = (environment: Environment) =>
    choosePlugins(registry, readConfig(environment), environment, {
      fetch: (url, init) => fetch(url, init),
      clock,
      log,
      context,
    });
  return {
    context,
    logged,
    choose,
    plugins: await choose(environment),
    factsOf: async (incidentId) => {
      const facts = await incidentFacts(context, incidentId);
      if (!facts) throw new Error("no such incident");
      return facts;
    },
    [Symbol.asyncDispose]: async () => {
      await close();
      await database[Symbol.asyncDispose]();
    },
  };
}
