import { Type } from "@sinclair/typebox";
import { Elysia, status, t } from "elysia";
import { endSignIn, endSignIns, listSignIns, signInKinds } from "../../core/auth/session/sign_ins.ts";
import { parseUserName } from "../../core/auth/user/field.ts";
import { toApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import { addressOf, type Deps } from "../deps.ts";
import { refusals, refusalsOfOne } from "../http/error.ts";
import { closed, instant, listQuery, listQueryOf, nullable, oneOf, pageOf } from "../http/schema.ts";

export const signInView = t.Object(
  {
    id: t.String({ format: "uuid" }),
    kind: oneOf(signInKinds, { description: "`terminal`: an access token" }),
    user: t.String(),
    created_at: instant,
    expires_at: instant,
    is_admin: t.Boolean(),
    serial: nullable(t.String({ description: "Of the newest certificate, if it is one of svc" })),
    is_current: t.Boolean({ description: "Whether this request uses it" }),
  },
  closed,
);
const user = t.Optional(t.String({ minLength: 1, maxLength: 320 }));

/** What users are signed in with. */
export const signInsRoutes = (deps: Deps) => {
  const userOf = (name?: string) =>
    name === undefined ? undefined : parseUserName("user", name, deps.config.domain);
  return new Elysia({ name: "sign-ins", prefix: "/sign_ins" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, query }) => {
        const wanted = { ...listQueryOf(query), user: userOf(query.user) };
        const page = await listSignIns(deps, actor, wanted);
        return { ...page, items: page.items.map(toApi) };
      },
      {
        actor: true,
        query: listQuery("`created_at` or `-created_at` (default)", { user }),
        detail: { summary: "List valid sign-ins" },
        response: { 200: pageOf(signInView), ...refusals },
      },
    )
    .delete(
      "/",
      async ({ actor, query, request, server }) => ({
        ended: await endSignIns(deps, actor, userOf(query.user), addressOf(deps, request, server)),
      }),
      {
        actor: true,
        query: t.Object({ user }, closed),
        detail: { summary: "Sign a user out everywhere" },
        response: { 200: t.Object({ ended: Type.Integer() }, closed), ...refusals },
      },
    )
    .delete(
      "/:sign_in_id",
      async ({ actor, params, request, server }) => {
        await endSignIn(deps, actor, params.sign_in_id, addressOf(deps, request, server));
        return status(204, undefined);
      },
      {
        actor: true,
        params: t.Object({ sign_in_id: t.String({ format: "uuid" }) }, closed),
        detail: { summary: "End a sign-in" },
        response: { 204: t.Void(), ...refusalsOfOne },
      },
    );
};
