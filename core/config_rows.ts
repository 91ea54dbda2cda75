import { layered } from "../platform/environment.ts";
import { masked, withoutPassword } from "../platform/secret.ts";
import type { Environment } from "../platform/variable.ts";
import { readValue, variables } from "./config.ts";
import type { Setting } from "./plugin/settings.ts";

/** A row of `svc server config`. */
export interface ConfigRow {
  key: string;
  /** As text. Empty if not set, masked for a secret. */
  value: string;
  /** `environment`, `.env`, `trial`, `default`, the variable that names a file, or empty if not set. */
  source: string;
}

export interface Layer {
  source: "environment" | ".env" | "trial";
  environment: Environment;
}

/**
 * Returns the configuration as the service reads it, with all its faults. An invalid value is shown as it is, so that
 * its source can be found.
 *
 * @param layers the sources of values, of which the first wins
 */
export function configRows(
  layers: readonly Layer[],
  settings: readonly Setting[],
): { rows: ConfigRow[]; faults: string[] } {
  const environment = layers
    .map((layer) => layer.environment)
    .reduceRight<Environment>((lower, upper) => layered(upper, lower), {});
  const rows: ConfigRow[] = [];
  const faults: string[] = [];
  for (const one of [...Object.values(variables), ...settings]) {
    const { value, fault } = readValue(environment, one);
    const raw = environment[one.name]?.trim();
    const text = value === undefined ? (raw ?? "") : String(value);
    const set = sourceOf(one, environment, layers);
    // A missing setting may belong to a plugin that is not selected.
    if (fault && set) faults.push(fault);
    rows.push({
      key: one.name,
      value: one.secret && text !== "" ? masked : withoutPassword(text),
      source: set ?? (text === "" ? "" : "default"),
    });
  }
  return { rows, faults };
}

function sourceOf(
  { name, secret }: Pick<Setting, "name" | "secret">,
  environment: Environment,
  layers: readonly Layer[],
): string | undefined {
  const holder = environment[name]?.trim() ? name : `${name}_FILE`;
  if (!environment[holder] || (holder !== name && !secret)) return undefined;
  const place = layers.find(({ environment }) => environment[holder]?.trim())?.source ?? "";
  return holder === name ? place : `${holder} (${place})`;
}
