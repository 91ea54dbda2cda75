import { describe, expect, test } from "bun:test";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { browserCommand, openBrowser, reasonNotToOpen } from "./browser.ts";

describe("whether to open a browser", () => {
  test.each([
    [undefined, { DISPLAY: ":0" }, "linux", undefined],
    [undefined, { WAYLAND_DISPLAY: "wayland-0" }, "linux", undefined],
    [undefined, { WSL_DISTRO_NAME: "Debian" }, "linux", undefined],
    [undefined, { BROWSER: "w3m" }, "linux", undefined],
    [undefined, {}, "linux", "no-display"],
    [undefined, {}, "darwin", undefined],
    [undefined, {}, "win32", undefined],
    [undefined, { DISPLAY: ":0", SSH_CONNECTION: "1 2 3 4" }, "linux", "ssh"],
    [undefined, { BROWSER: "w3m", SSH_TTY: "/dev/pts/0" }, "linux", "ssh"],
    [undefined, { SSH_TTY: "/dev/pts/0" }, "darwin", "ssh"],
    [true, { SSH_TTY: "/dev/pts/0" }, "linux", undefined],
    [false, { DISPLAY: ":0" }, "linux", "no-browser"],
  ] as const)("asked %p, %p on %s: %p", (asked, env, platform, reason) => {
    expect(reasonNotToOpen(asked, env, platform)).toBe(reason as never);
  });
});

describe("the command in BROWSER", () => {
  const url = "https://svc.example/c/T0?a=1&b=$(x)";
  const noFile = () => false;
  test.each([
    ["firefox", ["firefox", url]],
    ["firefox --new-window", ["firefox", "--new-window", url]],
    ["firefox:chromium", ["firefox", url]],
    ["chromium --app=%s --x", ["chromium", `--app=${url}`, "--x"]],
    ["/bin/a:/bin/b", ["/bin/a", url]],
    ["C:\\b.exe", ["C:\\b.exe", url]],
    ["curl http://127.0.0.1:99", ["curl", "http://127.0.0.1:99", url]],
    ["sh -c x;y", ["sh", "-c", "x;y", url]],
  ])("%s", (browser, command) => {
    expect(browserCommand(browser, url, noFile)).toEqual(command);
  });

  test("a path with a space is one word", () => {
    const path = "/Applications/My Browser";
    expect(browserCommand(path, url, (file) => file === path)).toEqual([path, url]);
  });
});

describe("a browser", () => {
  const url = "https://svc.example/c/T0?a=1&b=$(touch x);`y`";

  test("gets the address as one argument, without a shell", async () => {
    const file = join(mkdtempSync(join(tmpdir(), "svc-browser-")), "arguments");
    const { promise: written, resolve } = Promise.withResolvers<string>();
    const server = Bun.serve({
      port: 0,
      fetch: async (request) => {
        resolve(await request.text());
        return new Response();
      },
    });
    const script = `${file}.ts`;
    await Bun.write(
      script,
      `await fetch(process.argv[2], { method: "POST", body: JSON.stringify(process.argv.slice(3)) });`,
    );
    void openBrowser(url, { BROWSER: `${process.execPath} ${script} ${server.url}` });
    expect(JSON.parse(await written)).toEqual([url]);
    await server.stop(true);
  });

  test("that does not exist", async () => {
    expect(await openBrowser(url, { BROWSER: "/nonexistent/browser" })).toBe(
      "there is no /nonexistent/browser",
    );
  });

  test("that fails after it was started", async () => {
    expect(await openBrowser(url, { BROWSER: "false" })).toBe("exit code 1");
  });
});
