import type { ComponentChildren } from "preact";
import { render } from "preact-render-to-string";
import { pageHeaders } from "../server/page/page.ts";
import { newSecret } from "../platform/secret.ts";
import { acceptedCodings } from "../server/static/compressed.ts";
import { assets } from "./assets.ts";
import { Keys } from "./parts/keys.tsx";
import { Initials, nameOf } from "./parts/person.tsx";
import { Reader, type ReaderFacts } from "./parts/reader.ts";
import { gzipOf, type Piece } from "./pieces.ts";
import { adminPath, app, helpPath, profilePath, signOutPath } from "./paths.ts";

/** Our own script only, and for readers only: these pages share the origin of the approve page, which has none. */
const scriptPolicy = `${pageHeaders["content-security-policy"]}; script-src 'self'; connect-src 'self'`;

export interface DocumentProps {
  title: string;
  /** Null for pages that anybody sees. They have no script. */
  reader: ReaderFacts | null;
  /** The path of the page's stream, if the page is live. */
  stream?: string;
  /** The entry of the navigation that the page is. */
  here?: "board" | "work" | "access" | "numbers" | "report" | "search" | "admin";
  /** For the search field. */
  q?: string;
  children?: ComponentChildren;
  /** Instead of `children`, what Preact has made of them before: pieces of HTML, and texts of this reader. */
  pieces?: readonly (Piece | string)[];
}

/** A whole page. The script fetches it again when something changes, and replaces what differs in `main`. */
function Document({ title, reader, stream, here, q, children }: DocumentProps) {
  return (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>{`${title} · svc`}</title>
        <link rel="icon" href="/icon.svg" type="image/svg+xml" />
        <link rel="stylesheet" href={assets.style.path} />
        {reader && <script type="module" src={assets.client.path} />}
      </head>
      <body data-stream={stream} data-user={reader?.user}>
        {reader && (
          <a class="skip" href="#main">
            Skip to the content
          </a>
        )}
        <header class="site">
          {reader ? (
            <a class="brand" href={app}>
              svc
            </a>
          ) : (
            <span class="brand">svc</span>
          )}
          {reader && <Navigation reader={reader} here={here} q={q} isLive={stream !== undefined} />}
        </header>
        <main id="main">
          {reader ? <Reader.Provider value={reader}>{children}</Reader.Provider> : children}
        </main>
        {reader && <Footer {...reader} />}
      </body>
    </html>
  );
}

function Navigation({
  reader,
  here,
  q,
  isLive,
}: {
  reader: ReaderFacts;
  here: DocumentProps["here"];
  q: string | undefined;
  isLive: boolean;
}) {
  const current = (name: DocumentProps["here"]) => (here === name ? "page" : undefined);
  return (
    <>
      <nav aria-label="Main">
        <a href={app} aria-current={current("board")}>
          Board
        </a>
        <a href={`${app}/work`} aria-current={current("work")}>
          My work
        </a>
        <a href={`${app}/access`} aria-current={current("access")}>
          Access
        </a>
        <a href={`${app}/numbers`} aria-current={current("numbers")}>
          Numbers
        </a>
        <a href={`${app}/report`} aria-current={current("report")}>
          Report
        </a>
        {reader.admin && (
          <a href={adminPath} aria-current={current("admin")}>
            Admin
          </a>
        )}
      </nav>
      <form class="search" action={`${app}/search`} role="search">
        <input type="search" name="q" value={q} placeholder="Search  /" aria-label="Search" required />
      </form>
      {isLive && (
        <span class="live" role="status">
          not live
        </span>
      )}
      <details class="account">
        <summary title={reader.user}>
          <Initials of={nameOf(reader.user)} />
          <span class="hidden">Your account</span>
        </summary>
        <div class="menu">
          <p>
            <bdi>{reader.user}</bdi>
            {reader.admin && <span class="quiet"> admin</span>}
          </p>
          <a href={profilePath}>Profile</a>
          <form method="post" action={signOutPath}>
            <input type="hidden" name="csrf" value={reader.csrf} />
            <button type="submit">Sign out</button>
          </form>
        </div>
      </details>
    </>
  );
}

function Footer({ timeZone, isZoneDefault }: ReaderFacts) {
  return (
    <footer class="quiet">
      <p>
        Times are in {timeZone}.{" "}
        {isZoneDefault && (
          <>
            <a href={profilePath}>Choose your time zone</a>.{" "}
          </>
        )}
        <a class="help" href={helpPath}>
          Keyboard help
        </a>{" "}
        <kbd>?</kbd>
      </p>
      <dialog aria-labelledby="help">
        <h2 id="help">Keyboard help</h2>
        <Keys />
        <form method="dialog">
          <button type="submit">Close</button>
        </form>
      </dialog>
    </footer>
  );
}

export interface AnswerOptions {
  status?: number;
  headers?: Record<string, string>;
  /** Of somebody who may accept a compressed page. */
  request?: Request;
}

/** In place of the pieces. */
const mainSlot = newSecret();

/** In characters. Below this, compression saves less than a packet. */
const leastCompressed = 1024;

/** Sends a page. */
export function answer(
  page: DocumentProps,
  { status = 200, headers = {}, request }: AnswerOptions = {},
): Response {
  const { pieces } = page;
  const html = `<!doctype html>${render(<Document {...page} children={pieces ? mainSlot : page.children} />)}`;
  const [before = "", after = ""] = html.split(mainSlot);
  const parts = pieces && [before, ...pieces, after];
  const codings = acceptedCodings(request?.headers.get("accept-encoding") ?? null);
  const isCompressed = codings.includes("gzip") && (pieces !== undefined || html.length >= leastCompressed);
  const zipped = () => (parts ? gzipOf(parts) : Bun.gzipSync(html));
  const plain = () => parts?.map((part) => (typeof part === "string" ? part : part.text)).join("") ?? html;
  return new Response(isCompressed ? zipped() : plain(), {
    status,
    headers: {
      ...pageHeaders,
      ...(page.reader && { "content-security-policy": scriptPolicy }),
      ...(isCompressed && { "content-encoding": "gzip" }),
      ...headers,
    },
  });
}
