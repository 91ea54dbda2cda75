import { Unauthenticated } from "../platform/errors.ts";
import { pageHeaders } from "../server/page/page.ts";
import { withoutTimeout } from "../server/stream/routes.ts";
import type { Site, Visit } from "./site.tsx";

/** In UTF-16 characters, sent at once. */
const pieceLength = 65_536;

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
  let isBegun = false;
  const ended = withoutTimeout(server, request);
  const body = new ReadableStream<string>({
    async pull(controller) {
      if (isBegun) {
        const now = (await visitors.find(request))?.actor;
        if (now?.user !== user || (admin && !now.admin)) throw new Unauthenticated("The sign-in has ended");
      }
      isBegun = true;
      let text = "";
      while (text.length < pieceLength) {
        const { done, value } = await file.pieces.next();
        if (done) {
          controller.enqueue(text);
          ended();
          return controller.close();
        }
        text += value;
      }
      controller.enqueue(text);
    },
    async cancel() {
      await file.pieces.return?.();
    },
  });
  return new Response(body.pipeThrough(new TextEncoderStream()), {
    headers: fileHeaders(file.name, file.type),
  });
}
