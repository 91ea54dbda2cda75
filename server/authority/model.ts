import { type Static, t } from "elysia";
import {
  type AuthorityKey,
  authorityNamePattern,
  fingerprintOf,
  longestAuthorityName,
} from "../../core/authority/authority.ts";
import { authorityKinds } from "../../drizzle/schema/index.ts";
import { toApi } from "../../platform/names.ts";
import { closed, id, idText, instant, listQuery, nullable, oneOf } from "../http/schema.ts";

const name = t.String({ pattern: authorityNamePattern, maxLength: longestAuthorityName });
const kind = oneOf(authorityKinds);
export const authorityParams = t.Object({ authority: name }, closed);
export const authorityKeyParams = t.Object({ authority: name, authority_key_id: idText }, closed);
export const keyParams = t.Object({ authority_key_id: idText }, closed);
export const keyQuery = listQuery("`created_at` or `-created_at` (default)");
export const newKey = t.Object(
  {
    kind,
    name,
    revoke: t.Optional(
      t.Boolean({
        description: "Revoke all previous keys and everything they signed",
      }),
    ),
  },
  closed,
);
export const keyView = t.Object(
  {
    id,
    kind,
    name,
    public: t.String({ description: "A line of a `.pub` file, or a certificate in PEM" }),
    fingerprint: t.String(),
    created_at: instant,
    active_at: t.String({ format: "date-time", description: "When it starts signing" }),
    expires_at: nullable(t.String({ format: "date-time", description: "When it stops being trusted" })),
    revoked_at: nullable(instant),
  },
  closed,
);

export function keyViewOf(key: AuthorityKey): Static<typeof keyView> {
  return toApi({ ...key, fingerprint: fingerprintOf(key) });
}
