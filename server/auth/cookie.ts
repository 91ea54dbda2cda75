import type { Config } from "../../core/config.ts";

const secure = (config: Config) => config.publicUrl.startsWith("https://");

/** With `__Host-`, browsers accept the cookie only from this host and over https (RFC 6265bis, 4.1.3). */
export function sessionCookieName(config: Config): string {
  return secure(config) ? "__Host-svc_session" : "svc_session";
}

/** Set-Cookie for a session id. Lax, not Strict, because the issuer's callback comes from another site. */
export function sessionCookie(config: Config, id: string): string {
  const attributes = ["Path=/", "HttpOnly", "SameSite=Lax", ...(secure(config) ? ["Secure"] : [])];
  return `${sessionCookieName(config)}=${id}; ${attributes.join("; ")}`;
}

/** The value of a cookie. If its name is repeated, none is used, since one of them was planted. */
export function readCookie(request: Request, name: string): string | undefined {
  const values = (request.headers.get("cookie") ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`));
  return values.length === 1 ? values[0]!.slice(name.length + 1) : undefined;
}
