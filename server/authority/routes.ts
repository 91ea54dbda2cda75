import { Elysia, t } from "elysia";
import {
  getAuthorityKey,
  listAuthorityKeys,
  rotateAuthority,
  trustedKeys,
} from "../../core/authority/authority.ts";
import { sshRevocationList } from "../../core/authority/ssh_revocation_list.ts";
import { x509RevocationLists } from "../../core/authority/x509_revocation_list.ts";
import { NotFound } from "../../platform/errors.ts";
import { actorMacro } from "../auth/actor.ts";
import type { Deps } from "../deps.ts";
import { problemSchema, refusals, refusalsOfOne, refusalsOfPost } from "../http/error.ts";
import { created, withIdempotencyKey } from "../http/idempotency.ts";
import { listQueryOf, pageOf } from "../http/schema.ts";
import { shared } from "../http/shared.ts";
import { isUnchanged } from "../static/caching.ts";
import {
  authorityKeyParams,
  authorityParams,
  keyParams,
  keyQuery,
  keyView,
  keyViewOf,
  newKey,
} from "./model.ts";

/** Much shorter than the day between the publication of a key and its first use. */
const keyCaching = "public, max-age=300";
/** Short, because a revocation takes effect only when servers have fetched it. */
const listCaching = "public, max-age=5";
const listMilliseconds = 2000;
const mostLists = 100;

const pemType = "application/x-pem-file";
const crlType = "application/pkix-crl";
const krlType = "application/octet-stream";

/** A file in the OpenAPI document, in which Elysia would describe everything as JSON or plain text. */
const fileOf = (mediaType: string) => {
  const schema = { type: "string" as const, ...(mediaType === pemType ? {} : { format: "binary" }) };
  return { 200: { description: "Done", content: { [mediaType]: { schema } } } };
};

const noAuthority = (name: string) => new NotFound(`The authority ${name} does not exist or has no key yet`);

/** The keys of all authorities, for admins. */
const keyRoutes = (deps: Deps) =>
  new Elysia({ name: "authority keys", prefix: "/access/authority_keys" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, query }) => {
        const page = await listAuthorityKeys(deps, actor, listQueryOf(query));
        return { ...page, items: page.items.map(keyViewOf) };
      },
      { actor: true, query: keyQuery, response: { 200: pageOf(keyView), ...refusals } },
    )
    .post(
      "/",
      async ({ actor, body, request, set }) => {
        const { revoke = false, ...authority } = body;
        const made = await withIdempotencyKey(
          deps,
          { actor, request, body },
          async (context) => keyViewOf(await rotateAuthority(context, actor, { ...authority, revoke })),
          async ({ id }) => void (await getAuthorityKey(deps, actor, id)),
          (key) => `/access/authority_keys/${key.id}`,
        );
        return created(set, made);
      },
      {
        actor: true,
        body: newKey,
        detail: { summary: "Create the next key of an authority" },
        response: { 201: keyView, ...refusalsOfPost },
      },
    )
    .get(
      "/:authority_key_id",
      async ({ actor, params }) =>
        keyViewOf(await getAuthorityKey(deps, actor, Number(params.authority_key_id))),
      { actor: true, params: keyParams, response: { 200: keyView, ...refusalsOfOne } },
    );

/** The files that SSH hosts fetch without a token. */
const sshRoutes = (deps: Deps) => {
  const listOf = recentLists((name) => sshRevocationList(deps, name));
  return new Elysia({ name: "SSH authorities", prefix: "/access/ssh" })
    .get(
      "/:authority/ca.pub",
      async ({ params: { authority }, set }) => {
        const keys = await trustedKeys(deps, "ssh", authority);
        if (keys.length === 0) throw noAuthority(authority);
        Object.assign(set.headers, {
          "content-type": "text/plain; charset=utf-8",
          "cache-control": keyCaching,
        });
        return keys.map((key) => `${key.public}\n`).join("");
      },
      {
        params: authorityParams,
        detail: { summary: "Get the public keys of an SSH authority" },
        response: { 200: t.String(), 400: problemSchema, 404: problemSchema },
      },
    )
    .get(
      "/:authority/krl",
      async ({ params: { authority }, request }) => {
        const list = await listOf(authority);
        if (!list) throw noAuthority(authority);
        return answerList(request, list.digest, list.bytes, krlType);
      },
      {
        params: authorityParams,
        detail: { summary: "Get the revocation list of an SSH authority", responses: fileOf(krlType) },
        response: { 200: t.Unknown(), 400: problemSchema, 404: problemSchema },
      },
    );
};

/** The files that TLS servers fetch without a token. */
const x509Routes = (deps: Deps) => {
  const listOf = recentLists((name) => x509RevocationLists(deps, name));
  return new Elysia({ name: "X.509 authorities", prefix: "/access/x509" })
    .get(
      "/:authority/ca.pem",
      async ({ params: { authority }, set }) => {
        const keys = await trustedKeys(deps, "x509", authority);
        if (keys.length === 0) throw noAuthority(authority);
        Object.assign(set.headers, { "content-type": pemType, "cache-control": keyCaching });
        return keys.map((key) => key.public).join("");
      },
      {
        params: authorityParams,
        detail: { summary: "Get the certificates of a certificate authority", responses: fileOf(pemType) },
        response: { 200: t.String(), 400: problemSchema, 404: problemSchema },
      },
    )
    .get(
      "/:authority/crl.pem",
      async ({ params: { authority }, request }) => {
        const list = await listOf(authority);
        if (!list) throw noAuthority(authority);
        return answerList(request, list.digest, Buffer.from(list.pem), pemType);
      },
      {
        params: authorityParams,
        detail: {
          summary: "Get the revocation lists of a certificate authority",
          responses: fileOf(pemType),
        },
        response: { 200: t.Unknown(), 400: problemSchema, 404: problemSchema },
      },
    )
    .get(
      "/:authority/crl/:authority_key_id",
      async ({ params: { authority, authority_key_id }, request }) => {
        const list = await listOf(authority);
        const ofKey = list?.lists.get(Number(authority_key_id));
        if (!list || !ofKey) throw noAuthority(authority);
        return answerList(request, list.digest, ofKey, crlType);
      },
      {
        params: authorityKeyParams,
        detail: {
          summary: "Get the revocation list of one key of a certificate authority",
          responses: fileOf(crlType),
        },
        response: { 200: t.Unknown(), 400: problemSchema, 404: problemSchema },
      },
    );
};

function answerList(request: Request, digest: string, bytes: Uint8Array, type: string): Response {
  // Weak, because a list also contains the time of its creation.
  const etag = `W/"${digest}"`;
  const headers = { etag, "cache-control": listCaching };
  if (isUnchanged(request.headers, etag)) return new Response(null, { status: 304, headers });
  return new Response(new Uint8Array(bytes), { headers: { ...headers, "content-type": type } });
}

/** Caches the lists of each authority briefly, so that many hosts cost one query. Does not cache "not found". */
function recentLists<T>(ask: (name: string) => Promise<T | undefined>) {
  const known = new Map<string, () => Promise<T | undefined>>();
  return (name: string) => {
    if (known.size >= mostLists && !known.has(name)) known.clear();
    return known.getOrInsertComputed(name, () =>
      shared(() => ask(name), { goodFor: listMilliseconds, isGood: (list) => list !== undefined }),
    )();
  };
}

export const authorityRoutes = (deps: Deps) =>
  new Elysia({ name: "all authorities" }).use(keyRoutes(deps)).use(sshRoutes(deps)).use(x509Routes(deps));
