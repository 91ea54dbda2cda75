import { Type } from "@sinclair/typebox";
import { t } from "elysia";

/**
 * Answers of the generator and poller, as in docs/protocol.md. `status` is text in each, because Weep reads it.
 */
export const generated = t.Object({
  challenge_url: t.String(),
  polling_url: t.String(),
  /** Seconds until the challenge expires. */
  expires_in: Type.Integer(),
  /** Seconds between polls. */
  interval: Type.Integer(),
  /** A bound client shows this next to the page's code; a legacy client cannot. */
  user_code: t.Optional(t.String()),
  binding: t.Optional(t.Literal("S256")),
  /** Whether the server accepts client certificates. Only for bound clients. */
  client_certificates: t.Optional(t.Boolean()),
});

export const pending = t.Object({ status: t.Literal("pending") });
export const unknown = t.Object({ status: t.Literal("unknown") });
export const expired = t.Object({ status: t.Literal("expired") });
export const denied = t.Object({ status: t.Literal("denied") });

export const success = t.Object({
  status: t.Literal("success"),
  encoded_jwt: t.String(),
  cookie_name: t.String(),
  /** Unix seconds. */
  expiration: Type.Integer(),
  user: t.String(),
  secure: t.Optional(t.Boolean()),
  http_only: t.Optional(t.Boolean()),
  /** As in Go's net/http, which Weep passes it to: 2 is Lax. */
  same_site: t.Optional(Type.Integer()),
});

/** An invalid request: `status` is a one-word reason, `detail` says how to fix it. */
export const refused = t.Object({
  status: t.String(),
  code: t.String(),
  detail: t.String(),
  field: t.Optional(t.String()),
  request_id: t.String(),
});
