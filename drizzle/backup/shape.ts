// Validation of a file's JSON before it is treated as ours.

/** undefined for invalid JSON. */
export function parseJson<T>(json: Buffer): T | undefined {
  try {
    return JSON.parse(json.toString()) as T;
  } catch {
    return undefined;
  }
}

export function areTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

/** Whether the value is a list of objects that have these string properties. */
export function areObjects(value: unknown, ...texts: string[]): boolean {
  if (!Array.isArray(value)) return false;
  return value.every((one) => texts.every((name) => typeof (one as never)?.[name] === "string"));
}
