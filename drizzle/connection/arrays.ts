/**
 * The types of arrays that svc reads and sends, in the format of postgres.js's `types`. It would otherwise ask each new
 * connection for the types of all arrays. Nobody awaits that query, so its failure would be an unhandled rejection.
 */
export const arrayTypes = {
  /** int2[], int4[], oid[] */
  numbers: arrayType([1005, 1007, 1028], Number),
  /** text[], varchar[], name[], uuid[], and int8[], whose numbers postgres.js reads as texts */
  texts: arrayType([1009, 1015, 1003, 2951, 1016], String),
};

function arrayType<T>(oids: [number, ...number[]], read: (text: string) => T) {
  return { to: oids[0], from: oids, serialize, parse: (text: string) => parse(text, read) };
}

/** PostgreSQL's text of an array of one dimension. drizzle writes the ones of its own columns itself. */
function serialize(values: unknown): unknown {
  if (!Array.isArray(values)) return values;
  const elements = values.map((value) =>
    value === null ? "NULL" : `"${String(value).replaceAll(/["\\]/g, "\\$&")}"`,
  );
  return `{${elements.join(",")}}`;
}

function parse<T>(text: string, read: (text: string) => T): (T | null)[] {
  // Bounds come first if they are not the usual ones.
  const elements = text.slice(text.indexOf("{"));
  return [...elements.matchAll(/"((?:[^"\\]|\\.)*)"|([^{},"]+)/gs)].map(([, quoted, bare]) => {
    if (quoted !== undefined) return read(quoted.replaceAll(/\\(.)/gs, "$1"));
    return bare === "NULL" ? null : read(bare!);
  });
}
