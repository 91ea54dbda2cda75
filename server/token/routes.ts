import { Elysia, status, t } from "elysia";
import { revokeToken } from "../../core/auth/token/verify.ts";
import { actorMacro } from "../auth/actor.ts";
import { addressOf, type Deps } from "../deps.ts";
import { problemSchema } from "../http/error.ts";

const jwks = t.Object({ keys: t.Array(t.Record(t.String(), t.Unknown())) });

/** Public keys for whoever verifies our tokens, and the end of one's own token. */
export const tokenRoutes = (deps: Deps) =>
  new Elysia({ name: "token" })
    .use(actorMacro(deps))
    .get(
      "/.well-known/jwks.json",
      async ({ set }) => {
        // Shorter than the day for which a key is public before it signs.
        set.headers["cache-control"] = "public, max-age=300";
        return (await deps.keys.jwks()) as { keys: Record<string, unknown>[] };
      },
      { response: { 200: jwks }, detail: { summary: "Get our public keys" } },
    )
    .delete(
      "/tokens/current",
      async ({ actor, request, server }) => {
        await revokeToken(deps, actor, addressOf(deps, request, server));
        return status(204, undefined);
      },
      {
        actor: true,
        response: { 204: t.Void(), 401: problemSchema, 403: problemSchema },
        detail: { summary: "End your token" },
      },
    );
