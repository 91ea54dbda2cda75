import { describe, expect, test } from "bun:test";
import { testIo } from "../../tests/support/cli/io.ts";
import { inText, linkText, statusStyle, stylesOf, whenText } from "./text.ts";

const url = "https://chat.example/c/1";
const on = (env: Record<string, string | undefined>, isTTY = true) =>
  linkText("chat", url, { stdout: { isTTY, write: () => {} }, env: { TERM: "xterm-256color", ...env } });

describe("a link", () => {
  test.each<Record<string, string>>([
    { VTE_VERSION: "7600" },
    { TERM: "xterm-kitty" },
    { TERM_PROGRAM: "iTerm.app" },
    { WT_SESSION: "1" },
    { KONSOLE_VERSION: "230804" },
  ])("is one on a terminal that opens links: %p", (env) => {
    expect(on(env)).toBe(`\x1b]8;;${url}\x1b\\chat\x1b]8;;\x1b\\`);
  });

  test.each<Record<string, string>>([
    {},
    { TERM: "dumb", VTE_VERSION: "7600" },
    { TERM: "linux" },
    { TERM: "tmux-256color", VTE_VERSION: "7600" },
    { TMUX: "/tmp/tmux-0/default,1,0", TERM_PROGRAM: "iTerm.app" },
    { VTE_VERSION: "4000" },
  ])("is a text and the URL on another: %p", (env) => {
    expect(on(env)).toBe(`chat ${url}`);
  });

  test("is a text and the URL for other programs", () => {
    expect(on({ VTE_VERSION: "7600" }, false)).toBe(`chat ${url}`);
  });

  test("opens nothing but web pages", () => {
    const io = { stdout: { isTTY: true, write: () => {} }, env: { TERM: "xterm-kitty" } };
    for (const target of ["file:///etc/passwd", "javascript:alert(1)", "no URL"])
      expect(linkText("chat", target, io)).toBe("chat");
    expect(linkText("chat", "https://a.example/\x1b]0;owned\x07", io)).not.toMatch(/owned\x07|\x1b\]0/);
  });
});

test("a time is relative on a terminal, and not rounded below what was typed", () => {
  const io = { ...testIo(), stdout: { isTTY: true, write: () => {} } };
  const after = (seconds: number) => new Date(io.clock.now().getTime() + seconds * 1000);
  expect(inText(after(2 * 3600 - 2), io.clock.now())).toBe("in 2h");
  expect(inText(after(90 * 60), io.clock.now())).toBe("in 1h");
  expect(whenText(after(-90).toISOString(), io)).toBe("1m ago");
  expect(whenText(after(-90).toISOString(), testIo())).toBe(after(-90).toISOString());
});

test("a status that only a newer server knows has no style", () => {
  const styled = stylesOf({ stdout: { isTTY: true, write: () => {} }, env: {} });
  expect(styled("Stable", statusStyle.Stable)).toBe("\x1b[33mStable\x1b[0m");
  expect(styled("Paused", statusStyle.Paused)).toBe("Paused");
});
