import { Elysia } from "elysia";
import { NotFound } from "../../platform/errors.ts";
import { type Routes, WrongMethod } from "../http/methods.ts";
import { filePath } from "./file_path.ts";
import { StaticFiles } from "./files.ts";
import { Folder } from "./folder.ts";

/** Well-known paths are shared with the front end: only existing routes are ours. */
const shared = ".well-known";
/** The methods of a file. */
const allowed = "GET, HEAD, OPTIONS";

/**
 * Serves `STATIC_DIR`, the files of a front end, publicly at each path that is not the API's. A path whose first
 * segment belongs to `api` is the API's, and remains its 404 if unknown.
 *
 * @throws ConfigurationError when there is no such folder
 */
export function staticRoutes(folder: string | undefined, api: Routes) {
  const routes = new Elysia({ name: "static" });
  if (folder === undefined) return routes;
  const files = new StaticFiles(Folder.open(folder));
  const isOwn = ownNames(api);
  // In any encoding, since a proxy may re-encode it.
  const isApi = (path: string) => isOwn(firstName(`/${filePath(path) ?? ""}`));
  const nothing = () => new NotFound("There is nothing at this address");
  const options = { parse: "none", detail: { hide: true } } as const;
  return routes
    .get(
      "/*",
      async ({ request, path }) => {
        const answer = isApi(path) ? undefined : await files.answer(request);
        if (!answer) throw nothing();
        return answer;
      },
      options,
    )
    .all(
      "/*",
      async ({ request, path }) => {
        if (isApi(path) || !(await files.has(request))) throw nothing();
        if (request.method !== "OPTIONS") throw new WrongMethod(allowed);
        return new Response(null, { status: 204, headers: { allow: allowed } });
      },
      options,
    );
}

/**
 * Returns a check for first segments of routes; of one with a parameter (`challenge:validator`), the part before the
 * parameter counts.
 */
function ownNames(routes: Routes): (name: string) => boolean {
  const all = routes.map(({ path }) => firstName(path)).filter((name) => name !== "*" && name !== shared);
  const names = new Set(all);
  const beginnings = all.filter((name) => name.includes(":")).map((name) => name.split(":", 1)[0] ?? "");
  return (name) => names.has(name) || beginnings.some((beginning) => name.startsWith(beginning));
}

function firstName(path: string): string {
  return path.split("/", 2)[1] ?? "";
}
