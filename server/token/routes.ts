import { Elysia, status, t } from "elysia";
import { revokeToken } from "../../core/auth/token/verify.ts";
import { discoveryDocument } from "../../core/federation/issuer.ts";
import { actorMacro } from "../auth/actor.ts";
import { addressOf, type Deps } from "../deps.ts";
import { problemSchema } from "../http/error.ts";

const jwks = t.Object({ keys: t.Array(t.Record(t.String(), t.Unknown())) });
const texts = t.Array(t.String());
const discovery = t.Object({
  issuer: t.String(),
  jwks_uri: t.String(),
  response_types_supported: texts,
  subject_types_supported: texts,
  id_token_signing_alg_values_supported: texts,
  scopes_supported: texts,
  claims_supported: texts,
});
/** Shorter than the day for which a key is public before it signs. */
const caching = "public, max-age=300";

/** Public keys that verify our tokens, discovery of them, and sign-out. */
export const tokenRoutes = (deps: Deps) =>
  new Elysia({ name: "token" })
    .use(actorMacro(deps))
    .get(
      "/.well-known/jwks.json",
      async ({ set }) => {
        set.headers["cache-control"] = caching;
        return (await deps.keys.jwks()) as { keys: Record<string, unknown>[] };
      },
      { response: { 200: jwks }, detail: { summary: "Get our public keys" } },
    )
    .get(
      "/.well-known/openid-configuration",
      async ({ set }) => {
        set.headers["cache-control"] = caching;
        const { keys } = await deps.keys.jwks();
        const algorithms = new Set(keys.map(({ alg }) => alg as string));
        return discoveryDocument(deps.config, [...algorithms]);
      },
      {
        response: { 200: discovery },
        detail: { summary: "Get our discovery document as an OpenID provider" },
      },
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
