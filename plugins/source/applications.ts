import { Type } from "@sinclair/typebox";
import { type ApplicationItem, definePlugin, type UnreadableItem } from "../../core/plugin.ts";
import { Unavailable } from "../../platform/errors.ts";
import { idIn, linkIn, listIn, orUnreadable, recordIn, textIn } from "./parse.ts";
import { type Location, nameOf } from "./read.ts";
import { openSource, sourceSettings } from "./settings.ts";

export default definePlugin({
  title: "Applications from files",
  slug: "application-source",
  version: "1.0.0",
  type: "application",
  author: "svc",
  description: "Reads applications from files and URLs (YAML, JSON, CSV)",
  configSchema: Type.Object(sourceSettings),
  create(config, deps) {
    const read = openSource(config, deps);
    return { list: async ({ signal }) => applicationsIn(await read(signal)) };
  },
});

function applicationsIn(
  sources: readonly { location: Location; value: unknown }[],
): (ApplicationItem | UnreadableItem)[] {
  return sources.flatMap(({ location, value }) =>
    listIn(value, ["applications"], location).map((record, at) => {
      const where = `${nameOf(location)}, record ${at + 1}`;
      return orUnreadable(
        () => applicationOf(recordIn(record, where), where),
        () => idOf(recordIn(record, where), where),
      );
    }),
  );
}

/** @throws Unavailable, which names the record that cannot be read */
function applicationOf(record: Record<string, unknown>, where: string): ApplicationItem {
  const [externalId, name] = [idOf(record, where), textIn(record, "name", where)];
  if (externalId === undefined || name === undefined) throw new Unavailable(`${where}: it has no name`);
  const description = textIn(record, "description", where);
  const uri = linkIn(record, "uri", where);
  return { externalId, name, ...(description && { description }), ...(uri && { uri }) };
}

function idOf(record: Record<string, unknown>, where: string): string | undefined {
  return idIn(record, where) ?? textIn(record, "name", where);
}
