/** A refusal before any route is looked for, in an object that clients of the challenge protocol can read as well. */
const refusal = (status: number, code: string, detail: string) =>
  new Response(JSON.stringify({ status: code, code, detail }), {
    status,
    // What follows on the connection may be for another host, too.
    headers: { "content-type": "application/json", "cache-control": "no-store", connection: "close" },
  });

/** For a request whose Host is missing, none, or there twice: what it is about cannot be told (RFC 9112, 3.2). */
export const noAddress = refusal(400, "invalid_input", "The Host header is missing or not valid");

/** RFC 6585, 5. */
export const headTooLarge = refusal(
  431,
  "headers_too_large",
  "The request line and headers are larger than 16 KiB: in a browser, delete the cookies of this site",
);

/** What a URL that can be read begins with, as long as it is of nothing but plain characters. */
const origin = /^https?:\/\/[\w.:[\]-]+\//;

/** Over TLS, Elysia would take the first name of the path for part of a host as short as this: see `readHttpsUrls`. */
const shortHost = /^https:\/\/[^/]{1,2}\//;

/** Judges addresses, for which most come to the same host: behind one that can be read, every path can. */
export function addressCheck(): (request: Request) => boolean {
  let known: string | undefined;
  return ({ url, headers }) => {
    if (known === undefined || !url.startsWith(known)) {
      if (!url.startsWith("http") || shortHost.test(url) || !URL.canParse(url)) return false;
      known = origin.exec(url)?.[0];
    }
    return !headers.get("host")?.includes(",");
  };
}
