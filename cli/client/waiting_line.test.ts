import { afterEach, beforeEach, expect, jest, test } from "bun:test";
import { testIo } from "../../tests/support/cli/io.ts";
import { WaitingLine } from "./waiting_line.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

function slow({ isTTY = true, columns = 80 } = {}) {
  const io = testIo();
  const controller = new AbortController();
  const stderr = { ...io.stderr, isTTY, columns };
  const line = new WaitingLine({ ...io, stderr }, "https://svc.example", controller.signal);
  return { line, controller, out: io.out };
}
const text = "Waiting for https://svc.example (Ctrl-C to stop)";

test("a server that answers soon is not mentioned", () => {
  const { line, out } = slow();
  const end = line.start();
  jest.advanceTimersByTime(1000);
  end();
  jest.advanceTimersByTime(5000);
  expect(out.stderr).toBe("");
});

test("a slow one is, until the last of its answers", () => {
  const { line, out } = slow();
  const ends = [line.start(), line.start()];
  jest.advanceTimersByTime(2000);
  ends[0]!();
  expect(out.stderr).toBe(text);
  ends[1]!();
  expect(out.stderr).toBe(`${text}\r\x1b[K`);
});

test("Ctrl-C removes the line at once", () => {
  const { line, controller, out } = slow();
  line.start();
  jest.advanceTimersByTime(2000);
  controller.abort();
  expect(out.stderr).toEndWith("\r\x1b[K");
});

test("it fits the terminal, and is only for one", () => {
  const [narrow, pipe] = [slow({ columns: 20 }), slow({ isTTY: false })];
  for (const { line } of [narrow, pipe]) line.start();
  jest.advanceTimersByTime(2000);
  expect([Bun.stringWidth(narrow.out.stderr), pipe.out.stderr]).toEqual([19, ""]);
});
