import { type Html, html } from "./html.ts";
import { page } from "./page.ts";

/** The links in our messages, and what to type instead of following one. */
const commands: readonly { path: RegExp; title: string; type: (id: string) => Html }[] = [
  {
    path: /^\/incidents\/(inc-[1-9]\d{0,18}|[1-9]\d{0,14})\/?$/i,
    title: "Read this incident in a terminal",
    type: (id) => html`<p>Type <code>svc incident view ${id.toUpperCase()}</code></p>`,
  },
  {
    path: /^\/tasks\/([1-9]\d{0,14})\/?$/,
    title: "Work on this task in a terminal",
    type: (id) =>
      html`<p>To list your tasks, type <code>svc incident task list</code></p>
        <p>When this one is done, type <code>svc incident task done ${id}</code></p>`,
  },
];

/** Whether the path is one of our links: its answer to a stranger depends on `Accept`. */
export const isLink = (path: string): boolean => commands.some((one) => one.path.test(path));

/**
 * The page for a browser that follows one of our links: there are no pages for records yet, and a browser is not signed in
 * to the API. It is the same whether the record exists or not. Undefined for other requests.
 */
export function commandPage(request: Request, path: string, publicUrl: string): Response | undefined {
  const { method, headers } = request;
  const reads = method === "GET" || method === "HEAD";
  const isBrowser = reads && !headers.has("authorization") && acceptsHtml(headers.get("accept"));
  const found = isBrowser ? commands.find((one) => one.path.test(path)) : undefined;
  if (found === undefined) return undefined;
  const [, id = ""] = found.path.exec(path)!;
  return page({
    title: found.title,
    status: 401,
    body: html`${found.type(id)}
      <p>If svc is not signed in there, type first <code>svc login --server ${publicUrl}</code></p>`,
    headers: { vary: "Accept" },
  });
}

/** Whether a browser navigates: programs accept anything, or JSON. */
function acceptsHtml(accept: string | null): boolean {
  return (accept ?? "")
    .split(",", 20)
    .some((range) => /^\s*text\/html\s*(;|$)/i.test(range) && !/;\s*q=0(\.0*)?\s*(;|$)/i.test(range));
}
