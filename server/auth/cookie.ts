import type { Config } from "../../core/config.ts";

const secure = (config: Config) => config.publicUrl.startsWith("https://");

/** `__Host-` makes a browser take the cookie from this very host over https only (RFC 6265bis, 4.1.3). */
export function sessionCookieName(config: Config): string {
  return secure(config) ? "__Host-svc_session" : "svc_session";
}

/** Set-Cookie for a session id. Lax, not Strict: the way back from the issuer starts on another site. */
export function sessionCookie(config: Config, id: string): string {
  const attributes = ["Path=/", "HttpOnly", "SameSite=Lax", ...(secure(config) ? ["Secure"] : [])];
  return `${sessionCookieName(config)}=${id}; ${attributes.join("; ")}`;
}

/** The value of a cookie; of several by one name none, since one of them was planted. */
export function readCookie(request: Request, name: string): string | undefined {
  const values = (request.headers.get("cookie") ?? "")
    .split(";")
    .map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`));
  return values.length === 1 ? values[0]!.slice(name.length + 1) : undefined;
}
