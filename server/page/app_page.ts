import { redirect } from "./page.ts";

/** The links in our messages, and the pages that show what they are about. */
const pages: readonly { path: RegExp; page: string }[] = [
  { path: /^\/incidents\/(inc-[1-9]\d{0,18}|[1-9]\d{0,14})\/?$/i, page: "/app/incidents/" },
  { path: /^\/tasks\/([1-9]\d{0,14})\/?$/, page: "/app/tasks/" },
  { path: /^\/documents\/([1-9]\d{0,14})\/?$/, page: "/app/documents/" },
];

/** Whether the path is one of our links: its answer to a stranger depends on `Accept`. */
export const isLink = (path: string): boolean => pages.some((one) => one.path.test(path));

/**
 * Leads a browser that follows one of our links to the page of it. It does so whether the record exists or not, and before
 * anybody signs in. Undefined for other requests.
 */
export function appPage({ method, headers }: Request, path: string): Response | undefined {
  const reads = method === "GET" || method === "HEAD";
  const isBrowser = reads && !headers.has("authorization") && acceptsHtml(headers.get("accept"));
  const found = isBrowser ? pages.find((one) => one.path.test(path)) : undefined;
  if (found === undefined) return undefined;
  const [, id = ""] = found.path.exec(path)!;
  return redirect(`${found.page}${id}`, { vary: "Accept" });
}

/** Whether a browser navigates: programs accept anything, or JSON. */
function acceptsHtml(accept: string | null): boolean {
  return (accept ?? "")
    .split(",", 20)
    .some((range) => /^\s*text\/html\s*(;|$)/i.test(range) && !/;\s*q=0(\.0*)?\s*(;|$)/i.test(range));
}
