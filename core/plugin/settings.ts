import { FormatRegistry, OptionalKind, type TSchema, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { isNetwork } from "../../platform/address.ts";
import { isRecord } from "../../platform/record.ts";
import type { Environment } from "../../platform/variable.ts";
import { readValue, variables } from "../config.ts";

/** A setting of a plugin. */
export interface Setting {
  /** Its key in the configuration that the plugin gets. */
  key: string;
  /** Its environment variable. */
  name: string;
  schema: TSchema;
  about: string;
  secret: boolean;
}

/** Whether a credential can be ended now, or ends only when it expires. */
export type Revocable = "now" | "expiry";
/** The kind of public key that a credential certifies. */
export type CertifiedKey = "ssh" | "x509";

/** `SVC_PLUGIN_TERM_SOURCE_BEARER_TOKEN` for `bearerToken` of `term-source`. */
export function variableName(slug: string, key: string): string {
  const words = `${slug}_${key.replace(/[A-Z]/g, (letter) => `_${letter}`)}`;
  return `SVC_PLUGIN_${words.replaceAll("-", "_").toUpperCase()}`;
}

/** Every environment variable of a setting. */
export function namesOf({ name, secret }: Pick<Setting, "name" | "secret">): string[] {
  return secret ? [name, `${name}_FILE`] : [name];
}

/** Variables that belong to the service itself. */
export const ownNames: ReadonlySet<string> = new Set(Object.values(variables).flatMap(namesOf));

/**
 * Returns the settings that a `configSchema` describes. It is read as JSON Schema, which a TypeBox schema also is, and
 * rebuilt: a third party's schema may be from another release of TypeBox, or written by hand.
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
      faults.push(`configSchema: a key must be a camelCase word of up to 40 letters and digits`);
      continue;
    }
    const made = isRecord(property) ? typeOf(property) : undefined;
    if (!isRecord(property) || made === undefined) {
      faults.push(`configSchema: ${key} must be a string, number, integer, boolean or enum of strings`);
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

/** An unknown keyword must not be ignored: a limit that is not checked is not a limit. */
const keywords = new Set(
  "type title description default secret enum anyOf const minLength maxLength pattern format minimum maximum examples".split(
    " ",
  ),
);

/** The only `format` of a setting: comma-separated networks. A pattern cannot check that bits after the prefix are zero. */
const networksFormat = "networks";
FormatRegistry.Set(networksFormat, (text) => text.split(",").every((one) => isNetwork(one.trim())));

function typeOf(property: Record<string, unknown>): TSchema | undefined {
  if (Object.keys(property).some((keyword) => !keywords.has(keyword))) return undefined;
  const { type, default: value, minLength, maxLength, pattern, format, minimum, maximum } = property;
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
    if (format !== undefined && format !== networksFormat) return undefined;
    return Type.String(rest({ minLength, maxLength, pattern, format }));
  }
  if (type === "integer") return Type.Integer(rest({ minimum, maximum }));
  if (type === "number") return Type.Number(rest({ minimum, maximum }));
  if (type === "boolean") return Type.Boolean(rest({}));
  return undefined;
}

/** From `enum: [...]`, or from TypeBox's union of literals. */
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

/** Returns it as JSON, without getters, symbols and the like. Undefined if it cannot be serialised. */
function plain(value: unknown): Record<string, unknown> | undefined {
  try {
    const copy: unknown = JSON.parse(JSON.stringify(value));
    return isRecord(copy) ? copy : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a plugin's configuration with every fault, and its secrets, which must not appear in any text we publish. */
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

/** Adds the author's description to the error about a missing variable. */
function withAbout(fault: string, { about }: Setting): string {
  return fault.endsWith("is not set") && about ? `${fault}: ${about}` : fault;
}
