import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";
import { secret } from "../../tests/support/browser/front_end.ts";
import { useFrontEnd } from "../../tests/support/http/front_end_server.ts";
import { startTestServer } from "../../tests/support/http/server.ts";
import { createInspectionApp } from "../inspection.ts";

const { site, server } = useFrontEnd();

const get = (path: string, headers: Record<string, string> = {}, method = "GET") => {
  const init = { method, headers: { "accept-encoding": "identity", ...headers }, decompress: false };
  return server().fetch(path, init);
};
const page = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
const js = "/assets/index-C9dQ2LpZ.js";
const css = "/assets/index-BkH3xT1a.css";

describe("a file", () => {
  test.each([
    ["/", "text/html;charset=utf-8"],
    [js, "text/javascript;charset=utf-8"],
    [css, "text/css;charset=utf-8"],
    ["/logo.png", "image/png"],
    ["/logo-too.png", "image/png"],
    ["/%C3%BCber%20uns.txt", "text/plain;charset=utf-8"],
    ["/.well-known/security.txt", "text/plain;charset=utf-8"],
    ["/guide/", "text/html;charset=utf-8"],
    [`${js}?v=1`, "text/javascript;charset=utf-8"],
  ])("%s is %s, with the same headers for HEAD", async (path, type) => {
    const answer = await get(path);
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, type]);
    const head = await get(path, {}, "HEAD");
    const facts = ({ headers }: Response) =>
      [...headers].filter(([name]) => name !== "date" && name !== "x-request-id");
    expect(head.status).toBe(200);
    expect(facts(head)).toEqual(facts(answer));
    expect(await head.text()).toBe("");
    expect(Number(head.headers.get("content-length"))).toBe((await answer.bytes()).length);
  });

  test("is cached permanently if it is named by its content, and revalidated otherwise", async () => {
    const kept = async (path: string) => (await get(path, page)).headers.get("cache-control");
    expect(await kept(js)).toBe("public, max-age=31536000, immutable");
    for (const path of ["/", "/index.html", "/logo.png", "/some/where"])
      expect(await kept(path)).toBe("no-cache");
  });

  test("counts as changed even if the modification time and size are the same", async () => {
    const path = join(site.path, "built.txt");
    const build = (content: string) => {
      writeFileSync(path, content.repeat(3000));
      utimesSync(path, 0, 0);
    };
    const read = async (coding: string, etag = "") => {
      const answer = await get("/built.txt", { "accept-encoding": coding, "if-none-match": etag });
      const bytes = await answer.bytes();
      return { answer, text: String.fromCharCode((coding === "gzip" ? gunzipSync(bytes) : bytes)[0]!) };
    };
    build("a");
    const first = { gzip: await read("gzip"), identity: await read("identity") };
    // A file system may store change times in hundredths of a second.
    await Bun.sleep(50);
    build("b");
    for (const coding of ["gzip", "identity"] as const) {
      expect(first[coding].text).toBe("a");
      expect((await read(coding, first[coding].answer.headers.get("etag")!)).text).toBe("b");
    }
  });

  test("that has not changed is 304, without a body or headers about one", async () => {
    for (const coding of ["identity", "gzip", "br"]) {
      const first = await get(css, { "accept-encoding": coding });
      const etag = first.headers.get("etag") ?? "";
      const again = await get(css, { "accept-encoding": coding, "if-none-match": etag });
      expect([again.status, await again.text(), again.headers.get("content-type")]).toEqual([304, "", null]);
      for (const name of ["etag", "cache-control", "vary", "content-security-policy"]) {
        expect(again.headers.get(name)).toBe(first.headers.get(name));
      }
    }
    const since = (await get(css)).headers.get("last-modified") ?? "";
    expect((await get(css, { "if-modified-since": since })).status).toBe(304);
  });

  test("with a failed If-Match is 412, without a body", async () => {
    const answer = await get("/logo.png", { "if-match": '"another"', range: "bytes=0-9" });
    expect([answer.status, await answer.text()]).toEqual([412, ""]);
    const etag = (await get("/logo.png")).headers.get("etag") ?? "";
    expect((await get("/logo.png", { "if-match": etag, range: "bytes=0-9" })).status).toBe(206);
  });

  test("does not reveal its name on disk", async () => {
    site.put("data.bin", "a");
    site.put("data.bin.br", brotliCompressSync("a"));
    symlinkSync("data.bin", join(site.path, "shown.bin"));
    for (const coding of ["identity", "br"]) {
      const { headers } = await get("/shown.bin", { "accept-encoding": coding });
      expect(headers.get("content-disposition")).toBe("inline");
      expect(JSON.stringify([...headers])).not.toContain("data.bin");
    }
    const compressed = await get("/data.bin", { "accept-encoding": "br" });
    expect(compressed.headers.get("content-encoding")).toBe("br");
    expect(JSON.stringify([...compressed.headers])).not.toContain("data.bin");
  });

  test("that has changed has another ETag, and is sent in its current version", async () => {
    site.put("changes.txt", "one");
    const etag = (await get("/changes.txt")).headers.get("etag") ?? "";
    site.put("changes.txt", "more");
    const answer = await get("/changes.txt", { "if-none-match": etag });
    expect([answer.status, await answer.text()]).toEqual([200, "more"]);
  });
});

describe("Range", () => {
  test.each([
    ["bytes=0-9", 206, "bytes 0-9/2000", 10],
    ["bytes=1990-", 206, "bytes 1990-1999/2000", 10],
    ["bytes=-5", 206, "bytes 1995-1999/2000", 5],
    ["bytes=2000-", 416, "bytes */2000", 0],
    // Several ranges or an unknown unit: the whole file.
    ["bytes=0-1,5-6", 200, null, 2000],
    ["pages=1-2", 200, null, 2000],
  ])("%s", async (range, status, contentRange, length) => {
    const answer = await get("/logo.png", { range });
    expect([answer.status, answer.headers.get("content-range")]).toEqual([status, contentRange]);
    // Added once: by Bun, if it has evaluated the range.
    expect(answer.headers.get("accept-ranges")).toBe(status === 200 ? null : "bytes");
    expect((await answer.bytes()).length).toBe(length);
  });

  test("of the client's version, or the whole file", async () => {
    const etag = (await get("/logo.png")).headers.get("etag") ?? "";
    const part = async (tag: string) =>
      (await get("/logo.png", { range: "bytes=0-9", "if-range": tag })).status;
    expect([await part(etag), await part('"another"')]).toEqual([206, 200]);
  });

  test("applies to the stored bytes, without compression", async () => {
    const answer = await get(css, { range: "bytes=0-9", "accept-encoding": "gzip" });
    expect([answer.status, answer.headers.get("content-encoding")]).toEqual([206, null]);
    expect(await answer.text()).toBe(site.style.slice(0, 10));
  });
});

describe("compression", () => {
  const decompress = {
    br: brotliDecompressSync,
    zstd: zstdDecompressSync,
    gzip: gunzipSync,
  };

  test.each([
    ["br, gzip, zstd", "br"],
    ["gzip, zstd", "zstd"],
    ["gzip", "gzip"],
    ["br;q=0.1, gzip;q=0.2", "gzip"],
    ["identity, gzip;q=0", null],
    ["deflate", null],
  ] as const)("%s: the precompressed file is sent as %p", async (accepted, coding) => {
    const answer = await get(js, { "accept-encoding": accepted });
    expect(answer.headers.get("content-encoding")).toBe(coding);
    expect(answer.headers.get("vary")).toBe("accept-encoding");
    expect(answer.headers.get("content-type")).toBe("text/javascript;charset=utf-8");
    const bytes = await answer.bytes();
    expect((coding ? decompress[coding](bytes) : Buffer.from(bytes)).toString()).toBe(site.script);
  });

  test("is applied here to uncompressed files, if it saves anything", async () => {
    const answer = await get(css, { "accept-encoding": "br, gzip" });
    expect(answer.headers.get("content-encoding")).toBe("gzip");
    const bytes = await answer.bytes();
    expect(bytes.length).toBeLessThan(site.style.length / 5);
    expect(gunzipSync(bytes).toString()).toBe(site.style);
    for (const path of ["/logo.png", "/"]) {
      expect((await get(path, { "accept-encoding": "gzip" })).headers.get("content-encoding")).toBeNull();
    }
  });

  test("gives each coding a different ETag", async () => {
    const tags = await Promise.all(
      ["br", "zstd", "gzip", "identity"].map(async (coding) =>
        (await get(js, { "accept-encoding": coding })).headers.get("etag"),
      ),
    );
    expect(new Set(tags).size).toBe(4);
  });

  test("ignores a precompressed file older than the original", async () => {
    site.put("old.js", "new content");
    site.put("old.js.br", "of the old content");
    utimesSync(join(site.path, "old.js.br"), new Date(0), new Date(0));
    const answer = await get("/old.js", { "accept-encoding": "br" });
    expect(await answer.text()).toBe("new content");
  });
});

describe("a path without a file", () => {
  test("is the index for browser navigation, and 404 otherwise", async () => {
    for (const path of ["/some/where", "/some/where/", "/somewhere?x=1"]) {
      const answer = await get(path, page);
      expect([answer.status, answer.headers.get("vary")]).toEqual([200, "accept, accept-encoding"]);
      expect(await answer.text()).toContain('<main id="app">');
      expect((await get(path, page, "HEAD")).status).toBe(200);
      for (const accept of ["*/*", "application/json", "image/*"]) {
        const refused = await get(path, { accept });
        expect(refused.status).toBe(404);
        expect(refused.headers.get("content-type")).toBe("application/problem+json");
      }
    }
    for (const path of ["/assets/index-gone.js", "/favicon.ico", "/a/b.png"]) {
      expect((await get(path, page)).status).toBe(404);
    }
  });

  test("redirects from a folder to its index, under any proxy path prefix", async () => {
    const answer = await get("/guide", page);
    expect([answer.status, answer.headers.get("location")]).toEqual([308, "guide/"]);
    const asked = await get("/guide?code=1", page);
    expect([asked.status, asked.headers.get("location")]).toEqual([308, "guide/?code=1"]);
  });

  test("redirects to a folder whose name would be read as a scheme", async () => {
    mkdirSync(join(site.path, "mailto:us"));
    writeFileSync(join(site.path, "mailto:us/index.html"), "<h1>Us</h1>");
    const answer = await get("/mailto:us", page);
    expect([answer.status, answer.headers.get("location")]).toEqual([308, "./mailto:us/"]);
  });

  test("stays the API's if it is an API path, whatever the folder contains", async () => {
    for (const path of [
      "/incidents/new.html",
      "/incidents/x/y/z",
      "/%69ncidents/new.html",
      "/noauth/x",
      "/healthcheck/x",
      "/approve/x/y",
    ]) {
      const answer = await get(path, page);
      expect(`${path} ${answer.status}`).toMatch(/ (401|404)$/);
      expect(await answer.text()).not.toMatch(/not the API|<main id="app">/);
    }
    expect(await (await get("/healthcheck")).text()).toContain('"status":"ok"');
    expect((await get("/healthcheck/")).headers.get("content-type")).toContain("application/json");
    expect(await (await get("/.well-known/jwks.json")).text()).toContain('"keys"');
    expect((await get("/challenge_validator/x", page)).status).toBe(404);
  });

  test("is also a link out of the folder, or a hidden file", async () => {
    for (const path of ["/link.txt", "/up/secret.txt", "/beside/secret.txt", "/.env", "/.git/config"]) {
      const answer = await get(path);
      expect(`${path} ${answer.status}`).toBe(`${path} 404`);
      expect(await answer.text()).not.toContain(secret);
    }
  });
});

describe("STATIC_DIR", () => {
  test("that is not a folder stops the start with a clear message", async () => {
    const start = (STATIC_DIR: string) => createInspectionApp({ STATIC_DIR });
    await expect(start("/no/such/folder")).rejects.toThrow(
      "STATIC_DIR: there is no folder /no/such/folder that can be read",
    );
    const file = join(site.path, "logo.png");
    await expect(start(file)).rejects.toThrow(`STATIC_DIR: there is no folder ${file} that can be read`);
  });

  test("not set: only the API and the pages are served", async () => {
    await using plain = await startTestServer();
    for (const path of ["/index.html", "/some/where"]) {
      expect((await plain.fetch(path, { headers: page })).status).toBe(404);
    }
  });

  test("is a public route, and logged as such", async () => {
    const { routes } = server().app;
    expect(routes.some(({ method, path }) => method === "GET" && path === "/*")).toBe(true);
    await get(js);
    expect(server().logged.some((line) => line.includes('"route":"/*"'))).toBe(true);
  });
});
