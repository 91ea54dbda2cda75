import { Unauthenticated } from "../platform/errors.ts";
import { pageHeaders } from "../server/page/page.ts";
import type { Site, Visit } from "./site.tsx";

/** In UTF-16 characters, sent at once. */
const pieceLength = 65_536;
/**
 * How long nobody may ask for the next piece. Bun does not notice that a slow reader empties the buffers of the network, which
 * hold megabytes.
 */
const unreadSeconds = 240;

/** Headers of a file. `type` is its media type, of a text. */
export const fileHeaders = (name: string, type: string) => ({
  ...pageHeaders,
  "content-type": `${type}; charset=utf-8`,
  "content-disposition": `attachment; filename*=UTF-8''${encodeURIComponent(name)}`,
});

/**
 * A file that is written while the browser reads it. The download fails when its reader is signed out, or is no longer an
 * admin if they began as one, because the pieces are read for them as they were.
 */
export function download(
  { visitors }: Site,
  { request, server, visitor }: Visit,
  file: { name: string; type: string; pieces: AsyncIterator<string> },
): Response {
  const { user, admin } = visitor.actor;
  const headers = fileHeaders(file.name, file.type);
  if (request.method === "HEAD") return new Response(null, { headers });
  let isBegun = false;
  const body = new ReadableStream<string>({
    async pull(controller) {
      server?.timeout(request, 0);
      if (isBegun) {
        const now = (await visitors.find(request, true))?.actor;
        if (now?.user !== user || (admin && !now.admin)) throw new Unauthenticated("The sign-in has ended");
      }
      isBegun = true;
      let text = "";
      let isLast = false;
      while (text.length < pieceLength && !isLast) {
        const { done, value } = await file.pieces.next();
        if (done) isLast = true;
        else text += value;
      }
      controller.enqueue(text);
      if (isLast) controller.close();
      server?.timeout(request, unreadSeconds);
    },
    async cancel() {
      await file.pieces.return?.();
    },
  });
  return new Response(body.pipeThrough(new TextEncoderStream()), { headers });
}
