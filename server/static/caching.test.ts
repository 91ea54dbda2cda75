import { expect, test } from "bun:test";
import { join } from "node:path";
import { isNamedByContent, isUnchanged, isUnwanted } from "./caching.ts";

test.each([
  "assets/index-BkH3xT1a.js",
  "assets/index-DiwRgTda.css",
  "main.3f2a1b4c.js",
  "a/chunk-7f3k2q1z.js",
  "logo-D2_k9-aB.svg",
  "index-BkH3xT1a.js.map",
  "main.8f14e45fceea167a5a36dedd4bea2543.js",
])("%s is named by its content", (name) => expect(isNamedByContent(name)).toBe(true));

test.each([
  "index.html",
  "favicon.ico",
  "jquery-3.7.1.min.js",
  "user-settings.js",
  "app.component.js",
  "banner-1920x1080.jpg",
  "photo-800x1200.jpg",
  "logo-variant2.svg",
  "report-20240101.pdf",
  "README",
  "icon-light-2x.png",
  "theme-DarkMode.css",
  "font-OpenSans.woff2",
  "messages-pt-br-v2.json",
  "photo-12-05-24.jpg",
  "page-UserList.js",
  "chunk-HomePage.js",
  "notes-Overview.html",
  "BkH3xT1a-names/index.js",
  "assets-BkH3xT1a/index.html",
])("%s is not named by its content", (name) => expect(isNamedByContent(name)).toBe(false));

const modified = new Date("2026-03-01T12:00:00.900Z");
const unchanged = (headers: Record<string, string>) => isUnchanged(new Headers(headers), '"a-1"', modified);

test.each([
  [{ "if-none-match": '"a-1"' }, true],
  [{ "if-none-match": 'W/"a-1"' }, true],
  [{ "if-none-match": '"x", "a-1"' }, true],
  [{ "if-none-match": "*" }, true],
  [{ "if-none-match": '"a-2"' }, false],
  [{ "if-none-match": "" }, false],
  [{ "if-modified-since": "Sun, 01 Mar 2026 12:00:00 GMT" }, true],
  [{ "if-modified-since": "Sun, 01 Mar 2026 11:59:59 GMT" }, false],
  [{ "if-modified-since": "Sunday, 01-Mar-26 12:00:00 GMT" }, true],
  [{ "if-modified-since": "Sun Mar  1 12:00:00 2026" }, true],
  [{ "if-modified-since": "Thu, 01 Jan 2099 00:00:00 GMT" }, true],
  [{ "if-modified-since": "yesterday" }, false],
  // A date in JavaScript, but not in HTTP.
  [{ "if-modified-since": "2099" }, false],
  [{ "if-modified-since": "2099-01-01T00:00:00Z" }, false],
  [{ "if-modified-since": "Monkey 2099" }, false],
  [{ "if-modified-since": "Thu, 01 Jan 2099" }, false],
  [{ "if-modified-since": "Thu, 01 Jan 2099 00:00:00 EST" }, false],
  [{ "if-modified-since": "Thu, 99 Jan 2099 00:00:00 GMT" }, false],
  // RFC 9110, 13.1.3: with a tag, the date is ignored.
  [{ "if-none-match": '"a-2"', "if-modified-since": "Sun, 01 Mar 2026 12:00:00 GMT" }, false],
  [{}, false],
])("%p: %p", (headers, answer) => expect(unchanged(headers as Record<string, string>)).toBe(answer));

test("without the time of the last change, only a tag counts", () => {
  const known = (headers: Record<string, string>) => isUnchanged(new Headers(headers), '"a-1"');
  expect(known({ "if-modified-since": "Thu, 01 Jan 2099 00:00:00 GMT" })).toBe(false);
  expect(known({ "if-none-match": '"a-1"' })).toBe(true);
});

const unwanted = (headers: Record<string, string>, etag = '"a-1"') =>
  isUnwanted(new Headers(headers), etag, modified);

test.each([
  [{ "if-match": '"a-1"' }, false],
  [{ "if-match": '"x" , "a-1"' }, false],
  [{ "if-match": "*" }, false],
  [{ "if-match": '"a-2"' }, true],
  [{ "if-match": 'W/"a-1"' }, true],
  [{ "if-unmodified-since": "Sun, 01 Mar 2026 12:00:00 GMT" }, false],
  [{ "if-unmodified-since": "Sun, 01 Mar 2026 11:59:59 GMT" }, true],
  [{ "if-unmodified-since": "1999" }, false],
  [{ "if-match": '"a-1"', "if-unmodified-since": "Sun, 01 Mar 2026 11:59:59 GMT" }, false],
  [{}, false],
])("%p: unwanted %p", (headers, answer) => expect(unwanted(headers as Record<string, string>)).toBe(answer));

test("a weak tag never satisfies If-Match", () => {
  expect(unwanted({ "if-match": 'W/"a-1"' }, 'W/"a-1"')).toBe(true);
  expect(unwanted({ "if-match": "*" }, 'W/"a-1"')).toBe(false);
});

test("dates of all formats are in GMT, whatever the server's time zone", () => {
  const code = `
    import { isUnchanged } from ${JSON.stringify(join(import.meta.dir, "caching.ts"))};
    const noon = new Date("2026-03-01T12:00:00Z");
    const since = (date) => isUnchanged(new Headers({ "if-modified-since": date }), '"a"', noon);
    for (const date of ["Sun, 01 Mar 2026 X GMT", "Sunday, 01-Mar-26 X GMT", "Sun Mar  1 X 2026"])
      console.log(since(date.replace("X", "11:59:59")), since(date.replace("X", "12:00:00")));
  `;
  for (const TZ of ["America/New_York", "Asia/Tokyo"]) {
    const { stdout } = Bun.spawnSync([process.execPath, "-e", code], { env: { TZ } });
    expect(stdout.toString()).toBe("false true\n".repeat(3));
  }
});
