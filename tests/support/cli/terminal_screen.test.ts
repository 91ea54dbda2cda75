import { expect, test } from "bun:test";
import { TerminalScreen } from "./terminal_screen.ts";

test("shows text, wraps lines, and scrolls", () => {
  const screen = new TerminalScreen(5, 3);
  screen.write("abc\r\nlonger\r\nx");
  expect(screen.lines).toEqual(["longe", "r", "x"]);
  expect(screen.scrolledOff).toEqual(["abc"]);
  screen.write("\r\x1b[1A\x1b[1;31mR\x1b[0m\x1b[K\x1b[J");
  expect(screen.lines).toEqual(["longe", "R", ""]);
  expect(screen.cells[1]![0]).toEqual({ text: "R", style: "1;31" });
});

test("a wide character takes two columns, and is never split", () => {
  const screen = new TerminalScreen(5, 3);
  screen.write("漢字漢e\u0301");
  expect(screen.lines).toEqual(["漢字", "漢e\u0301", ""]);
  expect(screen.cursor).toEqual({ x: 3, y: 1 });
});

test("without wrapping, long lines are cut", () => {
  const screen = new TerminalScreen(4, 2);
  screen.write("\x1b[?7labcdef\r\n\x1b[?7hghijkl");
  expect(screen.lines).toEqual(["ghij", "kl"]);
  expect(screen.scrolledOff).toEqual(["abcf"]);
});

test("lines rewrap when the size changes, and the cursor stays with its text", () => {
  const screen = new TerminalScreen(10, 4);
  screen.write("one\r\n123456789");
  screen.resize(4);
  expect(screen.lines).toEqual(["one", "1234", "5678", "9"]);
  expect(screen.cursor).toEqual({ x: 1, y: 3 });
  screen.resize(10);
  expect(screen.lines).toEqual(["one", "123456789", "", ""]);
  expect(screen.cursor).toEqual({ x: 9, y: 1 });
});

test("the alternate screen does not change the main screen", () => {
  const screen = new TerminalScreen(10, 3);
  screen.write("before\r\n\x1b[?1049h\x1b[?25l\x1b[Hboard");
  expect([screen.text, screen.isAlternate, screen.isCursorVisible]).toEqual(["board", true, false]);
  screen.write("\x1b[?25h\x1b[?1049lafter");
  expect(screen.lines).toEqual(["before", "after", ""]);
});

test("a sequence may arrive in parts, and an unknown sequence is an error", () => {
  const screen = new TerminalScreen();
  for (const part of "\x1b]8;;http://127.0.0.1/\x1b\\link\x1b]8;;\x1b\\ \x1b[31mred\x1b[0m")
    screen.write(part);
  expect(screen.text).toBe("link red");
  for (const text of ["\x1b]0;title\x07", "\x1b[2J", "\x07", "\x9b31m", "\x1bc"])
    expect(() => new TerminalScreen().write(text)).toThrow("unexpected");
});
