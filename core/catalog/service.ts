import { getTableColumns } from "drizzle-orm";
import { service } from "../../drizzle/schema/index.ts";
import { InvalidInput } from "../../platform/errors.ts";
import { descriptionLength, parseName, parseText } from "../../platform/text.ts";
import type { PluginRegistry } from "../plugin/registry.ts";
import { byText, type Item, listOf, type Resource } from "./resource.ts";
import { type Rotation, rosterSlug, rotationColumn, setRotation } from "./rotation/rotation.ts";

const { search, ...row } = getTableColumns(service);
const columns = { ...row, rotation: rotationColumn(service.id) };

export type Service = Item<typeof columns>;

export interface ServiceFields {
  name: string;
  description: string;
  /** The participant plugin that knows who is on call. Without one, nobody is. */
  pluginSlug: string | null;
  externalId: string | null;
  /** Only with the plugin `rosterSlug`. */
  rotation: Rotation | null;
}

/** Services. Only admins may write them: the person on call for one is called, and commands. */
export function services(registry: PluginRegistry): Resource<typeof service, typeof columns, ServiceFields> {
  return {
    one: "service",
    many: "services",
    table: service,
    columns,
    list: listOf("services", service, { name: service.name }),
    filters: {
      name: byText("name", service.name),
      plugin_slug: byText("plugin_slug", service.pluginSlug),
    },
    writers: "admins",
    deleted: "service.deleted",
    taken: {
      service_name_idx: "Another service has this name",
      service_external_id_idx: "Another service has this external_id of this plugin",
    },
    parse: ({ name, description, rotation, ...of }) => {
      const plugin = parsePlugin(registry, of);
      if (rotation && plugin.pluginSlug !== rosterSlug)
        throw new InvalidInput("rotation", `Only a service of the plugin ${rosterSlug} has a rotation`);
      return {
        name: parseName("name", name),
        description: parseText("description", description, descriptionLength),
        ...plugin,
      };
    },
    keep: (tx, id, { rotation }) => setRotation(tx, id, rotation),
  };
}

function parsePlugin(
  registry: PluginRegistry,
  { pluginSlug, externalId }: Pick<ServiceFields, "pluginSlug" | "externalId">,
) {
  if (pluginSlug === null) {
    if (externalId !== null) throw new InvalidInput("external_id", "An external_id needs a plugin_slug");
    return { pluginSlug, externalId };
  }
  if (registry.find(pluginSlug)?.type !== "participant")
    throw new InvalidInput("plugin_slug", "There is no participant plugin with this slug: svc plugin list");
  return { pluginSlug, externalId: externalId === null ? null : parseName("external_id", externalId) };
}
