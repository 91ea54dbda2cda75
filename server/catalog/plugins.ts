import { Elysia, t } from "elysia";
import { pluginTypes } from "../../core/plugin.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { problemSchema } from "../http/error.ts";
import { closed, pageOf } from "../http/schema.ts";

const pluginView = t.Object(
  {
    title: t.String(),
    slug: t.String(),
    version: t.String(),
    type: t.String({ description: pluginTypes.join(", ") }),
    author: t.String(),
    description: t.String(),
    chosen: t.Boolean({ description: "Whether it serves, as configured" }),
  },
  closed,
);

/** Every installed plugin, as `svc plugin list` prints it, without its configuration. */
export const pluginRoutes = (deps: Deps) =>
  new Elysia({ name: "plugin", prefix: "/plugins" }).use(actorMacro(deps)).get(
    "/",
    () => ({
      items: deps.registry.all.map(({ title, slug, version, type, author, description }) => ({
        ...{ title, slug, version, type, author, description },
        chosen: deps.plugins.find(type, slug) !== undefined,
      })),
      next_cursor: null,
    }),
    { actor: true, response: { 200: pageOf(pluginView), 401: problemSchema } },
  );
