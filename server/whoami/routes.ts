import { Elysia, t } from "elysia";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { problemSchema } from "../http/error.ts";

const whoami = t.Object({
  user: t.String(),
  groups: t.Array(t.String()),
  admin: t.Boolean(),
  expires_at: t.String({ format: "date-time" }),
});

/** Whom the access token belongs to, and until when. */
export const whoamiRoutes = (deps: Deps) =>
  new Elysia({ name: "whoami" }).use(actorMacro(deps)).get(
    "/whoami",
    ({ actor }) => ({
      user: actor.user,
      groups: actor.groups,
      admin: actor.admin,
      expires_at: actor.expiresAt.toISOString(),
    }),
    {
      actor: true,
      response: { 200: whoami, 401: problemSchema },
      detail: { summary: "Get the current user" },
    },
  );
