// What JSON of a file is, before it is believed to be what we write.

/** undefined for what is not JSON. */
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

/** Whether it is a list of objects that have these texts. */
export function areObjects(value: unknown, ...texts: string[]): boolean {
  if (!Array.isArray(value)) return false;
  return value.every((one) => texts.every((name) => typeof (one as never)?.[name] === "string"));
}
