import { singular } from "./operation.ts";
import type { Content, PathItem, Schema } from "./types.ts";

/** Gives names to request and response schemas, so that generated clients have named types. */
export function hoistSchemas(paths: Record<string, PathItem>): {
  paths: Record<string, PathItem>;
  schemas: Record<string, Schema>;
} {
  const names = new Map<string, string>();
  const claim = (name: string, content: Content | undefined) => {
    const schema = content?.["application/json"]?.schema;
    if (schema?.type !== "object") return;
    const key = JSON.stringify(schema);
    if (!names.has(key) && ![...names.values()].includes(name)) names.set(key, name);
  };
  for (const [path, item] of Object.entries(paths)) {
    const one = nameOf(path);
    const { get, post, put } = item;
    const got = get?.responses["200"]?.content;
    const page = got?.["application/json"]?.schema.properties?.next_cursor !== undefined;
    claim(page ? `${one}Page` : one, got);
    claim(one, post?.responses["201"]?.content);
    claim(`New${one}`, post?.requestBody?.content);
    claim(`Changed${one}`, put?.requestBody?.content);
  }
  const schemas: Record<string, Schema> = {};
  const hoist = (value: unknown, top = false): unknown => {
    if (Array.isArray(value)) return value.map((one) => hoist(one));
    if (typeof value !== "object" || value === null) return value;
    const name = top ? undefined : names.get(JSON.stringify(value));
    if (name !== undefined) {
      schemas[name] ??= hoist(value, true) as Schema;
      return { $ref: `#/components/schemas/${name}` };
    }
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, hoist(one)]));
  };
  return { paths: hoist(paths) as Record<string, PathItem>, schemas };
}

/** `/incidents/{incident_id}/reports/` → `IncidentReport` */
function nameOf(path: string): string {
  return path
    .split("/")
    .filter((segment) => segment !== "" && !segment.startsWith("{"))
    .map((segment) =>
      singular(segment).replace(/(?:^|[\W_]+)(\w)/g, (_, letter: string) => letter.toUpperCase()),
    )
    .join("");
}
