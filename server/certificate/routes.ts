import { Elysia, status, t } from "elysia";
import {
  type ClientCertificate,
  issueClientCertificate,
  listClientCertificates,
  revokeClientCertificate,
} from "../../core/auth/certificate/certificate.ts";
import { parseUserName } from "../../core/auth/user/field.ts";
import { toApi } from "../../platform/names.ts";
import { actorMacro } from "../auth/actor.ts";
import { addressOf, type Deps } from "../deps.ts";
import { requireConnection } from "../http/body.ts";
import { problemSchema, refusals, refusalsOfOne } from "../http/error.ts";
import { closed, instant, listQuery, listQueryOf, nullable, oneOf, pageOf } from "../http/schema.ts";
import { refreshed } from "../sso/refresh.ts";

const serial = t.String({ pattern: "^[0-9a-f]{1,40}$", description: "Hexadecimal" });
const certificateFields = {
  serial,
  user: t.String(),
  sha256: t.String({ description: "Of the DER encoding, in base64url, as in `x5t#S256`" }),
  created_at: instant,
  expires_at: instant,
  sign_in_expires_at: t.String({ format: "date-time", description: "Until when it can be renewed" }),
  revoked_at: nullable(instant),
};
export const certificateView = t.Object(certificateFields, closed);
const issuedView = t.Object(
  {
    ...certificateFields,
    certificate: t.String({ description: "PEM" }),
    chain: t.String({ description: "The authority's certificate (PEM)" }),
    mtls_url: t.String({ description: "The address that accepts the certificate" }),
  },
  closed,
);
const newCertificate = t.Object(
  {
    csr: t.String({
      minLength: 1,
      // A longer one is refused with a sentence (platform/x509/certificate.ts).
      maxLength: 100_000,
      description:
        "A certificate signing request (PEM) with a P-256 key. Its subject and extensions are ignored",
    }),
  },
  closed,
);
const certificateQuery = listQuery("`created_at` or `-created_at` (default)", {
  user: t.Optional(t.String({ minLength: 1, maxLength: 320 })),
  valid: t.Optional(oneOf(["true", "false"], { description: "`true`: neither revoked nor expired" })),
});

const viewOf = ({ id: _, ...of }: ClientCertificate) => toApi(of);

/** Client certificates, with which users authenticate over mutual TLS. */
export const certificateRoutes = (deps: Deps) =>
  new Elysia({ name: "client certificates", prefix: "/certificates" })
    .use(actorMacro(deps))
    .get(
      "/",
      async ({ actor, query }) => {
        const { user, valid } = query;
        const page = await listClientCertificates(deps, actor, {
          ...listQueryOf(query),
          user: user === undefined ? undefined : parseUserName("user", user, deps.config.domain),
          valid: valid === "true",
        });
        return { ...page, items: page.items.map(viewOf) };
      },
      { actor: true, query: certificateQuery, response: { 200: pageOf(certificateView), ...refusals } },
    )
    .post(
      "/",
      async ({ actor, body, request, server }) => {
        const address = addressOf(deps, request, server);
        const known = await refreshed(deps, actor);
        // A client that no longer waits does not get the certificate, which would count until it expires.
        await requireConnection(request);
        const { certificate, chain, ...made } = await issueClientCertificate(deps, known, body.csr, address);
        return status(201, { ...viewOf(made), certificate, chain, mtls_url: deps.config.mtlsUrl! });
      },
      {
        actor: true,
        body: newCertificate,
        detail: { summary: "Sign or renew a client certificate" },
        response: { 201: issuedView, ...refusals, 409: problemSchema, 503: problemSchema },
      },
    )
    .delete(
      "/:serial",
      async ({ actor, params, request, server }) => {
        await revokeClientCertificate(deps, actor, params.serial, addressOf(deps, request, server));
        return status(204, undefined);
      },
      {
        actor: true,
        params: t.Object({ serial }, closed),
        detail: { summary: "Revoke a client certificate with all others of its sign-in" },
        response: { 204: t.Void(), ...refusalsOfOne },
      },
    );
