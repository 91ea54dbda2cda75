// Names are in snake_case in the API, and in camelCase in the code.

type SnakeCase<Name> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : "";

type CamelCase<Name> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : Name;

/** A record as the API shows it. */
export type ApiView<T> = T extends Date
  ? string
  : T extends readonly (infer Item)[]
    ? ApiView<Item>[]
    : T extends object
      ? { [K in keyof T as SnakeCase<K>]: ApiView<T[K]> }
      : T;

/** What the API receives, as core takes it. */
export type FromApi<T> = T extends readonly (infer Item)[]
  ? FromApi<Item>[]
  : T extends object
    ? { [K in keyof T as CamelCase<K>]: FromApi<T[K]> }
    : T;

/**
 * Converts a record for the API, with times as text. The record must have exactly the fields of its schema, and none whose
 * names others choose, such as the settings of a plugin.
 */
export function toApi<T>(value: T): ApiView<T> {
  return convert(value, snakeCase);
}

/** Converts a body from the API. Times stay texts. */
export function fromApi<T>(value: T): FromApi<T> {
  return convert(value, camelCase);
}

const snakeCase = remembering((name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
const camelCase = remembering((name) =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
);

/** The schemas have few names, and a page of a list has each of them fifty times: renaming took longer than the query. */
function remembering(rename: (name: string) => string): (name: string) => string {
  const known = new Map<string, string>();
  return (name) => {
    const renamed = known.get(name) ?? rename(name);
    known.set(name, renamed);
    return renamed;
  };
}

function convert<T>(value: unknown, rename: (name: string) => string): T {
  if (typeof value !== "object" || value === null) return value as T;
  if (value instanceof Date) return value.toISOString() as T;
  if (Array.isArray(value)) return value.map((one) => convert(one, rename)) as T;
  const converted: Record<string, unknown> = {};
  for (const name in value)
    converted[rename(name)] = convert((value as Record<string, unknown>)[name], rename);
  return converted as T;
}
