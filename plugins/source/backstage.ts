import { Type } from "@sinclair/typebox";
import { type ApplicationItem, definePlugin, isRecord, type UnreadableItem } from "../../core/plugin.ts";
import { Unavailable } from "../../platform/errors.ts";
import { orUnreadable, recordIn, textIn } from "./parse.ts";
import { type Location, nameOf } from "./read.ts";
import { openSource, sourceSettings } from "./settings.ts";

const { locations, bearerToken } = sourceSettings;

export default definePlugin({
  title: "Backstage catalog",
  slug: "backstage-catalog",
  version: "1.0.0",
  type: "application",
  author: "svc",
  description: "Reads applications from Backstage: catalog-info.yaml, or the catalog's API",
  configSchema: Type.Object({
    locations,
    bearerToken,
    kinds: Type.String({
      default: "Component",
      pattern: "^[A-Za-z]+( *, *[A-Za-z]+)*$",
      description: "Kinds of entity that are applications, comma-separated",
    }),
  }),
  create({ kinds, ...config }, deps) {
    // The API answers with JSON, which is also YAML.
    const read = openSource({ ...config, format: "yaml" }, deps);
    const wanted = kinds.split(",").map((kind) => kind.trim());
    return { list: async ({ signal }) => entitiesIn(await read(signal), wanted) };
  },
});

/**
 * https://backstage.io/docs/features/software-catalog/descriptor-format
 * @throws Unavailable if no entity is of the wanted kinds
 */
function entitiesIn(
  sources: readonly { location: Location; value: unknown }[],
  kinds: readonly string[],
): (ApplicationItem | UnreadableItem)[] {
  const wanted = new Set(kinds.map((kind) => kind.toLowerCase()));
  const applications = sources.flatMap(({ location, value }) =>
    documentsIn(value).flatMap((entity, at) => {
      if (entity === null) return []; // an empty document between two lines of ---
      const where = `${nameOf(location)}, entity ${at + 1}`;
      return (
        orUnreadable(
          () => entityOf(entity, wanted, where),
          () => undefined,
        ) ?? []
      );
    }),
  );
  // Otherwise, a misspelt kind would count all applications as removed.
  if (applications.length === 0) {
    const names = sources.map(({ location }) => nameOf(location)).join(", ");
    throw new Unavailable(`${names}: no entity of kind ${kinds.join(" or ")}`);
  }
  return applications;
}

/** @returns undefined for an entity of another kind @throws Unavailable, which names the entity that cannot be read */
function entityOf(entity: unknown, wanted: ReadonlySet<string>, where: string): ApplicationItem | undefined {
  const record = recordIn(entity, where);
  const kind = textIn(record, "kind", where)?.toLowerCase();
  const { apiVersion, metadata } = record;
  if (kind === undefined || typeof apiVersion !== "string" || !isRecord(metadata))
    throw new Unavailable(`${where}: it lacks apiVersion, kind or metadata`);
  if (kind === "location")
    throw new Unavailable(`${where}: Locations are not followed: list their targets instead`);
  return wanted.has(kind) ? applicationOf(kind, metadata, where) : undefined;
}

/** One entity, a list of entities, or the API's answer. */
function documentsIn(value: unknown): unknown[] {
  if (isRecord(value) && Array.isArray(value.items)) return value.items;
  return Array.isArray(value) ? value : [value];
}

function applicationOf(kind: string, metadata: Record<string, unknown>, where: string): ApplicationItem {
  const name = textIn(metadata, "name", where);
  if (name === undefined) throw new Unavailable(`${where}: it has no metadata.name`);
  const namespace = textIn(metadata, "namespace", where) ?? "default";
  const description = textIn(metadata, "description", where);
  const uri = linkOf(metadata);
  return {
    // The entity's reference, as Backstage writes it, is case-insensitive.
    externalId: `${kind}:${namespace}/${name}`.toLowerCase(),
    name: textIn(metadata, "title", where) ?? name,
    ...(description && { description }),
    ...(uri && { uri }),
  };
}

/** Its page, else its first link, else its source. */
function linkOf({ annotations, links }: Record<string, unknown>): string | undefined {
  const notes = isRecord(annotations) ? annotations : {};
  const [first] = Array.isArray(links) ? links : [];
  const source = notes["backstage.io/source-location"];
  return [
    notes["backstage.io/view-url"],
    isRecord(first) ? first.url : undefined,
    typeof source === "string" ? source.replace(/^url:/, "") : undefined,
  ].find((link): link is string => typeof link === "string" && /^https?:\/\/\S+$/.test(link));
}
