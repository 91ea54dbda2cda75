import { Type } from "@sinclair/typebox";
import { Unavailable } from "../../core/errors.ts";
import { type ApplicationItem, definePlugin } from "../../core/plugin.ts";
import { idIn, isRecord, linkIn, listIn, textIn } from "./parse.ts";
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

/** @throws Unavailable naming the record that cannot be read, or that is there twice */
function applicationsIn(sources: readonly { location: Location; value: unknown }[]): ApplicationItem[] {
  const applications = new Map<string, ApplicationItem>();
  for (const { location, value } of sources) {
    for (const [at, record] of listIn(value, ["applications"], location).entries()) {
      const where = `${nameOf(location)}, record ${at + 1}`;
      if (!isRecord(record)) throw new Unavailable(`${where}: it is no object`);
      const name = textIn(record, "name", where);
      if (name === undefined) throw new Unavailable(`${where}: it has no name`);
      const externalId = idIn(record, where) ?? name;
      if (applications.has(externalId))
        throw new Unavailable(`${where}: another application has the same id`);
      const description = textIn(record, "description", where);
      const uri = linkIn(record, "uri", where);
      applications.set(externalId, {
        externalId,
        name,
        ...(description && { description }),
        ...(uri && { uri }),
      });
    }
  }
  return [...applications.values()];
}
