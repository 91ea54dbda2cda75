import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";

export const secret = "the secret of another folder";

const script = `document.querySelector("#app").innerHTML = "<h1>" + location.pathname + "</h1>";\n${"// filler\n".repeat(300)}`;
const style = `h1 { color: rgb(0, 128, 0); }\n${"/* filler */\n".repeat(300)}`;

/** A small front end as a bundler builds it, with a private file outside of its folder. */
export function frontEnd() {
  const parent = mkdtempSync(join(tmpdir(), "svc-front-end-"));
  const path = join(parent, "dist");
  const put = (name: string, content: string | Uint8Array) => {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), content);
  };
  put(
    "index.html",
    `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Front end</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/assets/index-BkH3xT1a.css">
<script type="module" src="/assets/index-C9dQ2LpZ.js"></script>
<body><main id="app"></main></body>
</html>
`,
  );
  put("assets/index-BkH3xT1a.css", style);
  put("assets/index-C9dQ2LpZ.js", script);
  put("assets/index-C9dQ2LpZ.js.br", brotliCompressSync(script));
  put("assets/index-C9dQ2LpZ.js.zst", zstdCompressSync(script));
  put("assets/index-C9dQ2LpZ.js.gz", gzipSync(script));
  put("logo.png", new Uint8Array(2000));
  put("guide/index.html", "<h1>Guide</h1>");
  put("über uns.txt", "Grüße");
  put("healthcheck/index.html", "not the health");
  put("incidents/new.html", "not the API");
  put(".env", secret);
  put(".git/config", secret);
  put(".well-known/security.txt", "Contact: mailto:security@example.com");
  put(".well-known/jwks.json", "not the keys");
  writeFileSync(join(parent, "secret.txt"), secret);
  mkdirSync(join(parent, "dist-of-another"));
  writeFileSync(join(parent, "dist-of-another/secret.txt"), secret);
  symlinkSync(join(parent, "secret.txt"), join(path, "link.txt"));
  symlinkSync(parent, join(path, "up"));
  symlinkSync("../dist-of-another", join(path, "beside"));
  symlinkSync("logo.png", join(path, "logo-too.png"));
  return {
    path,
    script,
    style,
    put,
    [Symbol.dispose]: () => rmSync(parent, { recursive: true, force: true }),
  };
}
