import { gzipSync } from "node:zlib";
import idiomorph from "../node_modules/idiomorph/dist/idiomorph.min.js" with { type: "text" };
import { sha256, toHex } from "../platform/secret.ts";
import client from "./client/client.ts" with { type: "text" };
import style from "./style.css" with { type: "text" };

interface Asset {
  /** Its name contains a hash of the content, so that a browser may keep it for ever. */
  path: string;
  type: string;
  text: string;
  gzipped: Uint8Array<ArrayBuffer>;
}

function asset(name: string, ending: string, type: string, text: string): Asset {
  const hash = toHex(sha256(text)).slice(0, 16);
  const gzipped = new Uint8Array(gzipSync(text, { level: 9 }));
  return { path: `/app/assets/${name}-${hash}.${ending}`, type, text, gzipped };
}

const script = "text/javascript; charset=utf-8";
/** As a module: the package's own one is not minified. */
const morph = asset("morph", "js", script, `${idiomorph}\nexport { Idiomorph };`);
const compact = new Bun.Transpiler({ loader: "ts", target: "browser", minifyWhitespace: true });

/** What the pages load besides themselves. Without a build step: a file is its own module. */
export const assets = {
  style: asset("style", "css", "text/css; charset=utf-8", style),
  morph,
  client: asset(
    "client",
    "js",
    script,
    compact.transformSync(client).replace('"idiomorph"', `"${morph.path}"`),
  ),
};

/** Undefined when there is no such file. */
export function assetAnswer({ url, headers }: Request): Response | undefined {
  const { pathname } = new URL(url);
  const nameOf = (path: string) => path.slice(0, path.lastIndexOf("-"));
  const found = Object.values(assets).find(({ path }) => nameOf(path) === nameOf(pathname));
  // During a rolling release, the page may come from a server of another release than its style.
  const isOwn = found?.path === pathname;
  if (found === undefined) return undefined;
  const isGzipped = /\bgzip\b/.test(headers.get("accept-encoding") ?? "");
  return new Response(isGzipped ? found.gzipped : found.text, {
    headers: {
      "content-type": found.type,
      "cache-control": isOwn ? "public, max-age=31536000, immutable" : "no-store",
      "x-content-type-options": "nosniff",
      vary: "accept-encoding",
      ...(isGzipped && { "content-encoding": "gzip" }),
    },
  });
}
