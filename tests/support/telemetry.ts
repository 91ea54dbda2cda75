import { readConfig } from "../../core/config.ts";
import { openTelemetry, type Telemetry } from "../../platform/telemetry/telemetry.ts";
import type { Environment } from "../../platform/variable.ts";
import { type Family, parseExposition } from "./http/exposition.ts";
import { recordingLog } from "./log.ts";

export interface TestTelemetry extends AsyncDisposable {
  telemetry: Telemetry;
  /** All log lines. */
  logged: string[];
  scrape(): Promise<Map<string, Family>>;
}

/** Starts telemetry like a program. */
export async function startTestTelemetry(
  environment: Environment = { METRIC_PROVIDERS: "prometheus" },
): Promise<TestTelemetry> {
  const { log, logged } = recordingLog();
  const telemetry = await openTelemetry(readConfig(environment), log, "svc-server");
  if (!telemetry) throw new Error("nothing is configured");
  return {
    telemetry,
    logged,
    scrape: async () => parseExposition((await telemetry.scrape?.()) ?? ""),
    [Symbol.asyncDispose]: () => telemetry.stop(),
  };
}
