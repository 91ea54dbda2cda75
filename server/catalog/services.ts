import { Type } from "@sinclair/typebox";
import { Elysia, t } from "elysia";
import { getRecord } from "../../core/catalog/get.ts";
import { whoIsOnCall } from "../../core/catalog/on_call.ts";
import { rosterSlug } from "../../core/catalog/rotation/rotation.ts";
import { services } from "../../core/catalog/service.ts";
import { parseInstant } from "../../platform/instant.ts";
import { fromApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { problemSchema } from "../http/error.ts";
import { closed, id, idText, instant, nullable } from "../http/schema.ts";
import { description, name } from "./fields.ts";
import { catalogRoutes } from "./routes.ts";

const rotation = t.Object(
  {
    starts_at: instant,
    shift_hours: Type.Integer({ minimum: 1, maximum: 8760 }),
    members: t.Array(id, {
      minItems: 1,
      maxItems: 200,
      description: "Individuals in the order of their turns, each for `shift_hours`; one may have several",
    }),
  },
  { ...closed, description: `Only with the plugin \`${rosterSlug}\`` },
);

const shownRotation = t.Object(
  { starts_at: instant, shift_hours: Type.Integer(), members: t.Array(id) },
  closed,
);

const recordRoutes = (deps: Deps) =>
  catalogRoutes(deps, services(deps.registry), {
    path: "services",
    parameter: "service_id",
    written: {
      name,
      description,
      plugin_slug: nullable(name),
      external_id: nullable(name),
      rotation: nullable(rotation),
    },
    defaults: { description: "", plugin_slug: null, external_id: null, rotation: null },
    shown: {
      name: t.String(),
      description: t.String(),
      plugin_slug: nullable(t.String()),
      external_id: nullable(t.String()),
      rotation: nullable(shownRotation),
    },
    fieldsOf: ({ rotation, ...body }) => ({
      ...fromApi(body),
      rotation: rotation && {
        ...fromApi(rotation),
        startsAt: parseInstant("rotation.starts_at", rotation.starts_at),
      },
    }),
  });

const onCallView = t.Object(
  {
    individual: nullable(t.Object({ id: nullable(id), name: t.String(), email: t.String() }, closed)),
    at: instant,
  },
  closed,
);

const onCallRoutes = (deps: Deps) =>
  new Elysia({ name: "on-call", prefix: "/services" }).use(actorMacro(deps)).get(
    "/:service_id/on_call",
    async ({ actor, params }) => {
      const service = await getRecord(deps, actor, services(deps.registry), Number(params.service_id));
      const at = deps.clock.now();
      return { individual: await whoIsOnCall(deps, actor, service, at), at: at.toISOString() };
    },
    {
      actor: true,
      detail: { summary: "Get who is on call for a service" },
      params: t.Object({ service_id: idText }, closed),
      response: {
        200: onCallView,
        400: problemSchema,
        401: problemSchema,
        404: problemSchema,
        503: problemSchema,
      },
    },
  );

/** Services, and who is on call for them. */
export const serviceRoutes = (deps: Deps) =>
  new Elysia({ name: "services" }).use(recordRoutes(deps)).use(onCallRoutes(deps));
