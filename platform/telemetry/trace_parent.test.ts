import { expect, test } from "bun:test";
import fc from "fast-check";
import { parseTraceParent } from "./trace_parent.ts";

const hex = (length: number) =>
  fc
    .array(fc.constantFrom(..."0123456789abcdef"), { minLength: length, maxLength: length })
    .map((digits) => digits.join(""));
const id = (length: number) => hex(length).filter((digits) => /[1-9a-f]/.test(digits));
const [trace, span] = ["4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"];

test("a well-formed header is accepted; of its flags, only the one with a meaning is kept", () => {
  fc.assert(
    fc.property(id(32), id(16), fc.integer({ min: 0, max: 255 }), (traceId, spanId, flags) => {
      const header = `00-${traceId}-${spanId}-${flags.toString(16).padStart(2, "0")}`;
      expect(parseTraceParent(header)).toEqual({ traceId, spanId, traceFlags: flags & 1 });
    }),
  );
});

test("a later version may contain more", () => {
  expect(parseTraceParent(`cc-${trace}-${span}-01-what-will-be`)).toMatchObject({ traceId: trace });
  expect(parseTraceParent(`cc-${trace}-${span}-01`)).toMatchObject({ traceId: trace });
});

test.each([
  ["null", null],
  ["an empty header", ""],
  ["a version that does not exist", `ff-${trace}-${span}-01`],
  ["more than version 00 has", `00-${trace}-${span}-01-x`],
  ["more without a hyphen", `cc-${trace}-${span}-01x`],
  ["a trace of zeros", `00-${"0".repeat(32)}-${span}-01`],
  ["a span of zeros", `00-${trace}-${"0".repeat(16)}-01`],
  ["capitals", `00-${trace.toUpperCase()}-${span}-01`],
  ["a short id", `00-${trace.slice(1)}-${span}-01`],
  ["no flags", `00-${trace}-${span}`],
  ["blanks", ` 00-${trace}-${span}-01`],
  ["a second line", `00-${trace}-${span}-01\n`],
  ["a long header", `cc-${trace}-${span}-01-${"x".repeat(500)}`],
])("%s is rejected", (_, header) => {
  expect(parseTraceParent(header)).toBeUndefined();
});

test("arbitrary text is rejected", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (header) => {
      expect(parseTraceParent(header)).toBeUndefined();
    }),
  );
});
