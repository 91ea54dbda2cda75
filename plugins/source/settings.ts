import { type Static, Type } from "@sinclair/typebox";
import type { PluginDeps } from "../../core/plugin.ts";
import { type Format, formats, parseContent } from "./parse.ts";
import { type Location, parseLocations, readLocation } from "./read.ts";

/** The settings of every source. */
export const sourceSettings = {
  locations: Type.String({
    minLength: 1,
    description: "Paths and http(s) addresses to read, separated by spaces",
  }),
  format: Type.Unsafe<Format>(
    Type.Union(
      formats.map((format) => Type.Literal(format)),
      {
        default: "auto",
        description: "auto, yaml, json or csv; auto decides by the name, then by the media type",
      },
    ),
  ),
  bearerToken: Type.Optional(
    Type.String({
      minLength: 1,
      secret: true,
      description: "Sent only to the server of the addresses",
    }),
  ),
};

type SourceConfig = Static<ReturnType<typeof Type.Object<typeof sourceSettings>>>;

/**
 * Reads the locations, each time again. All or nothing: a record that is missing from a list counts as removed, but one
 * that could not be read does not.
 *
 * @throws ConfigurationError immediately if the locations are invalid
 */
export function openSource({ locations: text, format, bearerToken }: SourceConfig, deps: PluginDeps) {
  const locations = parseLocations(text, bearerToken);
  return async (signal: AbortSignal): Promise<{ location: Location; value: unknown }[]> =>
    await Promise.all(
      locations.map(async (location) => {
        const content = await readLocation(location, deps, { signal, bearerToken });
        return { location, value: parseContent(content, location, format) };
      }),
    );
}
