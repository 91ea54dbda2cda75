import fc from "fast-check";
import type { OpenApiDocument, Schema } from "../../../server/openapi/types.ts";

/** Texts that are known to break services. */
const hostileTexts = [
  "",
  " ",
  "\0",
  "a\0b",
  "\ud800",
  "\udfff\ud800",
  "'; drop table incident; --",
  "' or '1'='1",
  "$1",
  "%s%n%x",
  "{{constructor.constructor('return 1')()}}",
  "<script>alert(1)</script>",
  "- [ ] task @alice (due 2026-13-45)",
  "[a](javascript:alert(1))",
  "../../../etc/passwd",
  "\u202etxt.exe",
  "́".repeat(200),
  "👩‍👩‍👧‍👦".repeat(50),
  "A".repeat(20_001),
  "NaN",
  "1e999",
  "-0",
  "0x10",
  "__proto__",
  "toString",
  "\r\nx-injected: 1",
  "%00",
  "%zz",
  "2026-02-30T25:61:61Z",
  "9999999-01-01T00:00:00Z",
  "-271821-04-20T00:00:00.000Z",
  '"(" & | ! <-> :*',
];

const hostileNumbers = [
  0,
  -1,
  1.5,
  -0,
  2 ** 31,
  2 ** 31 - 1,
  2 ** 53,
  2 ** 53 - 1,
  2 ** 63,
  1e308,
  -1e308,
  1e-300,
];

/** The maximum of PostgreSQL's integer. */
const largest = 2 ** 31 - 1;

const hostileText = fc.constantFrom(...hostileTexts);

/** Any JSON value. */
const anything: fc.Arbitrary<unknown> = fc.oneof(
  hostileText,
  fc.constantFrom(...hostileNumbers),
  fc.constantFrom(null, true, false, [], {}, [[]], { a: { b: [null] } }),
  fc.jsonValue({ maxDepth: 2 }),
);

/** Values that mostly match a schema. `wild` is the percentage of parts that do not. */
export function fitting(document: OpenApiDocument, schema: Schema, wild: number): fc.Arbitrary<unknown> {
  const tame = tameOf(document, schema, wild);
  return wild === 0
    ? tame
    : fc.oneof({ arbitrary: tame, weight: 100 - wild }, { arbitrary: anything, weight: wild });
}

function tameOf(document: OpenApiDocument, schema: Schema, wild: number): fc.Arbitrary<unknown> {
  if (schema.$ref) {
    const known = document.components.schemas[schema.$ref.split("/").at(-1)!];
    if (!known) throw new Error(`There is no ${schema.$ref}`);
    return tameOf(document, known, wild);
  }
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map((one) => fitting(document, one, wild)));
  const kinds = [schema.type ?? []].flat();
  return fc.oneof(
    ...(kinds.length > 0 ? kinds : ["any"]).map((kind) => kindOf(document, kind, schema, wild)),
  );
}

const smallFrom = (least: number) => fc.integer({ min: least, max: least + 4 });

function kindOf(
  document: OpenApiDocument,
  kind: string,
  schema: Schema,
  wild: number,
): fc.Arbitrary<unknown> {
  switch (kind) {
    case "null":
      return fc.constant(null);
    case "boolean":
      return fc.boolean();
    case "integer":
    case "number":
      // Mostly small numbers, which are ids of existing records and versions of new ones.
      return fc.oneof(
        { arbitrary: smallFrom(Math.max(1, Number(schema.minimum ?? 1))), weight: 8 },
        {
          arbitrary: fc.integer({
            min: Number(schema.minimum ?? -5),
            max: Math.min(Number(schema.maximum ?? largest), largest),
          }),
          weight: 1,
        },
        { arbitrary: fc.constantFrom(...hostileNumbers), weight: wild > 0 ? 1 : 0 },
      );
    case "array":
      return fc.array(fitting(document, schema.items ?? {}, wild), {
        minLength: Number(schema.minItems ?? 0),
        maxLength: 3,
      });
    case "object":
      return objectOf(document, schema, wild);
    case "string":
      return textOf(schema, wild);
    default:
      return anything;
  }
}

function objectOf(document: OpenApiDocument, schema: Schema, wild: number): fc.Arbitrary<object> {
  const { properties = {}, required = [] } = schema;
  const fields = Object.fromEntries(
    Object.entries(properties).map(([name, field]) => [name, fitting(document, field, wild)]),
  );
  const whole = fc.record(fields, { requiredKeys: required });
  if (wild === 0) return whole;
  const less = fc.record(fields, { requiredKeys: [] });
  const more = fc
    .tuple(whole, hostileText, anything)
    .map(([fit, name, value]) => ({ ...fit, [name]: value }));
  return fc.oneof(
    { arbitrary: whole, weight: 8 },
    { arbitrary: less, weight: 1 },
    { arbitrary: more, weight: 1 },
  );
}

function textOf(schema: Schema, wild: number): fc.Arbitrary<string> {
  const longest = Number(schema.maxLength ?? 1000);
  const tame =
    typeof schema.pattern === "string"
      ? [fc.stringMatching(new RegExp(schema.pattern)).filter((text) => text.length <= longest)]
      : schema.format === "date-time"
        ? [
            fc
              .date({ noInvalidDate: true, min: new Date(0), max: new Date("2100-01-01") })
              .map((d) => d.toISOString()),
          ]
        : [
            fc.string({ minLength: Number(schema.minLength ?? 0), maxLength: 20, unit: "grapheme" }),
            fc.constantFrom("disk full", "alice@example.com", "https://example.com/a", "-id", "Open", "name"),
          ];
  return wild === 0 ? fc.oneof(...tame) : fc.oneof(...tame, ...tame, hostileText);
}
