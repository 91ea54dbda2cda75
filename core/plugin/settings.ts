import { OptionalKind, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Environment } from "../../platform/variable.ts";
import { readValue, variables } from "../config.ts";

/** One thing that can be set of a plugin. */
export interface Setting {
  /** Its name in the configuration that the plugin gets. */
  key: string;
  /** Its variable in the environment. */
  name: string;
  schema: TSchema;
  about: string;
  secret: boolean;
}

/** Whether a credential can be ended now, or only ends when it expires. */
export type Revocable = "now" | "expiry";

/** `SVC_PLUGIN_TERM_SOURCE_BEARER_TOKEN` for `bearerToken` of `term-source`. */
export function variableName(slug: string, key: string): string {
  const words = `${slug}_${key.replace(/[A-Z]/g, (letter) => `_${letter}`)}`;
  return `SVC_PLUGIN_${words.replaceAll("-", "_").toUpperCase()}`;
}

/** Every name that a setting takes in the environment. */
export function namesOf({ name, secret }: Setting): string[] {
  return secret ? [name, `${name}_FILE`] : [name];
}

/** Names that are the service's own. */
export const ownNames: ReadonlySet<string> = new Set(
  Object.values(variables).flatMap(({ name, secret }) => (secret ? [name, `${name}_FILE`] : [name])),
);

/**
 * The settings that a `configSchema` stands for. It is read as JSON Schema, which a TypeBox schema is, too, and made
 * anew: what a third party hands over may be of another release of TypeBox, or written by hand.
 */
export function settingsOf(slug: string, configSchema: unknown): { settings: Setting[]; faults: string[] } {
  const settings: Setting[] = [];
  const faults: string[] = [];
  const schema = plain(configSchema);
  if (schema?.type !== "object" || !isRecord(schema.properties ?? {})) {
    return { settings, faults: ["configSchema is not an object schema"] };
  }
  const required = Array.isArray(schema.required) ? schema.required : [];
  for (const [key, property] of Object.entries((schema.properties ?? {}) as Record<string, unknown>)) {
    if (!/^[a-z][A-Za-z0-9]{0,39}$/.test(key)) {
      faults.push(`configSchema: a key is no camelCase word of up to 40 letters and digits`);
      continue;
    }
    const made = isRecord(property) ? typeOf(property) : undefined;
    if (!isRecord(property) || made === undefined) {
      faults.push(`configSchema: ${key} is none of string, number, integer, boolean and enum of strings`);
      continue;
    }
    const hasDefault = made.default !== undefined;
    if (hasDefault && !Value.Check(made, made.default)) {
      faults.push(`configSchema: the default of ${key} does not fit its own type`);
      continue;
    }
    settings.push({
      key,
      name: variableName(slug, key),
      schema: hasDefault || required.includes(key) ? made : Type.Optional(made),
      about: typeof property.description === "string" ? property.description : "",
      secret: property.secret === true,
    });
  }
  return { settings, faults };
}

/** What is not understood must not count as absent: a limit that nobody checks is none. */
const keywords = new Set(
  "type title description default secret enum anyOf const minLength maxLength pattern minimum maximum examples".split(
    " ",
  ),
);

function typeOf(property: Record<string, unknown>): TSchema | undefined {
  if (Object.keys(property).some((keyword) => !keywords.has(keyword))) return undefined;
  const { type, default: value, minLength, maxLength, pattern, minimum, maximum } = property;
  const rest = <T extends object>(options: T) =>
    Object.fromEntries(
      Object.entries({ ...options, default: value }).filter(([, option]) => option !== undefined),
    );
  const choices = choicesOf(property);
  if (choices) {
    return Type.Union(
      choices.map((choice) => Type.Literal(choice)),
      rest({}),
    );
  }
  const numbers = [minLength, maxLength, minimum, maximum];
  if (numbers.some((limit) => limit !== undefined && typeof limit !== "number")) return undefined;
  if (type === "string") {
    if (pattern !== undefined && !isPattern(pattern)) return undefined;
    return Type.String(rest({ minLength, maxLength, pattern }));
  }
  if (type === "integer") return Type.Integer(rest({ minimum, maximum }));
  if (type === "number") return Type.Number(rest({ minimum, maximum }));
  if (type === "boolean") return Type.Boolean(rest({}));
  return undefined;
}

/** Of `enum: [...]`, or of TypeBox's union of literals. */
function choicesOf({ enum: values, anyOf }: Record<string, unknown>): string[] | undefined {
  const choices = Array.isArray(anyOf)
    ? anyOf.map((one: unknown) => (isRecord(one) ? one.const : undefined))
    : values;
  if (!Array.isArray(choices) || choices.length === 0) return undefined;
  return choices.every((choice) => typeof choice === "string") ? choices : undefined;
}

function isPattern(pattern: unknown): boolean {
  try {
    return typeof pattern === "string" && Boolean(new RegExp(pattern));
  } catch {
    return false;
  }
}

/** As JSON, so without getters, symbols and what else a stranger's object may have; undefined where it has none. */
function plain(value: unknown): Record<string, unknown> | undefined {
  try {
    const copy: unknown = JSON.parse(JSON.stringify(value));
    return isRecord(copy) ? copy : undefined;
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The configuration of one plugin, with every fault, and its secrets, which no text that leaves may hold. */
export function readSettings(
  environment: Environment,
  settings: readonly Setting[],
): { config: Record<string, unknown>; secrets: string[]; faults: string[] } {
  const config: Record<string, unknown> = {};
  const secrets: string[] = [];
  const faults: string[] = [];
  for (const setting of settings) {
    const { value, fault } = readValue(environment, setting);
    if (fault) faults.push(withAbout(fault, setting));
    else if (value !== undefined || !(OptionalKind in setting.schema)) config[setting.key] = value;
    if (setting.secret && value !== undefined) secrets.push(String(value));
  }
  return { config, secrets, faults };
}

/** A variable that is missing, in the words of the plugin's author. */
function withAbout(fault: string, { about }: Setting): string {
  return fault.endsWith("is not set") && about ? `${fault}: ${about}` : fault;
}
