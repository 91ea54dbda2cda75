import { usualHeaders } from "./security_headers.ts";
import { tlsClientOf } from "./tls_client.ts";

/** A refusal before routing, as an object that clients of the challenge protocol can read, too. */
export const refusal = (
  status: number,
  code: string,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
) =>
  new Response(JSON.stringify({ status: code, code, detail }), {
    status,
    // Later requests on the connection may be for another host.
    headers: { ...usualHeaders, "content-type": "application/json", connection: "close", ...headers },
  });

/** For a request whose Host is invalid or repeated: its target is unknown (RFC 9112, 3.2). */
export const noAddress = refusal(400, "invalid_input", "The Host header is not valid");

/** RFC 6585, 5. */
export const headTooLarge = refusal(
  431,
  "headers_too_large",
  "The request line and headers are larger than 16 KiB: in a browser, delete the cookies of this site",
);

/** The start of a valid URL that consists of plain characters only. */
const origin = /^https?:\/\/[\w.:[\]-]+\//;

/**
 * Over TLS, Elysia would take the first path segment for part of a host this short: see `readHttpsUrls`. The URLs of
 * the mTLS port begin with `http:`.
 */
const shortHost = /^https:\/\/[^/]{1,2}\//;
const shortMtlsHost = /^http:\/\/[^/]{1,3}\//;

/** Checks request URLs. Most requests have the same host: after one valid URL, every path on that host is valid. */
export function addressCheck(): (request: Request) => boolean {
  let known: string | undefined;
  return (request) => {
    const { url, headers } = request;
    if (known === undefined || !url.startsWith(known)) {
      // Without Host, in HTTP/1.0: the server completes the URL.
      if (url.startsWith("/") && !headers.has("host")) return true;
      if (!url.startsWith("http") || shortHost.test(url) || !URL.canParse(url)) return false;
      if (tlsClientOf(request) && shortMtlsHost.test(url)) return false;
      known = origin.exec(url)?.[0];
    }
    return !headers.get("host")?.includes(",");
  };
}
