import { expect, test } from "bun:test";
import { InvalidStream, SseParser } from "./sse.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

/** What a stream contains, however it is cut into chunks. */
function messagesOf(text: string) {
  const whole = new SseParser().push(bytes(text));
  for (const size of [1, 2, 3, 7]) {
    const parser = new SseParser();
    const all = bytes(text);
    const cut = [];
    for (let at = 0; at < all.length; at += size) cut.push(...parser.push(all.subarray(at, at + size)));
    expect(cut).toEqual(whole);
  }
  return whole;
}

test("a message has a name, data and an id", () => {
  expect(messagesOf('id: 7\nevent: event\ndata: {"id":7}\n\n')).toEqual([
    { event: "event", data: '{"id":7}', id: "7", previousId: "" },
  ]);
});

test("lines end with LF, CR or CRLF, wherever a chunk ends", () => {
  const expected = [
    { event: "message", data: "a\nb", id: "", previousId: "" },
    { event: "message", data: "c", id: "", previousId: "" },
  ];
  for (const end of ["\n", "\r", "\r\n"])
    expect(messagesOf(["data: a", "data: b", "", "data: c", "", "data: cut off"].join(end))).toEqual(
      expected,
    );
});

test("a byte order mark, comments, unknown fields and a missing space are allowed", () => {
  expect(messagesOf("\ufeff: welcome\ndata:x\nfoo: bar\ndata\n\n:\n\n")).toEqual([
    { event: "message", data: "x\n", id: "", previousId: "" },
  ]);
});

test("characters of several bytes may be cut", () => {
  expect(messagesOf("data: 障害 🚒\n\n")).toEqual([
    { event: "message", data: "障害 🚒", id: "", previousId: "" },
  ]);
});

test("a message without data is none, but its id counts", () => {
  const parser = new SseParser("3");
  expect(parser.lastEventId).toBe("3");
  expect(parser.push(bytes("id: 9\nevent: tick\n\n"))).toEqual([]);
  expect(parser.lastEventId).toBe("9");
  expect(parser.push(bytes("data: x\n\n"))).toEqual([
    { event: "message", data: "x", id: "9", previousId: "9" },
  ]);
});

test("the id of a message that was cut off does not count", () => {
  const parser = new SseParser("3");
  expect(parser.push(bytes("id: 4\ndata: x\n"))).toEqual([]);
  expect(parser.lastEventId).toBe("3");
});

test("an id with NUL, and a retry that is no number, are ignored", () => {
  const parser = new SseParser();
  parser.push(bytes("id: 4\n\nid: 5\0\nretry: soon\n\n"));
  expect([parser.lastEventId, parser.retry]).toEqual(["4", undefined]);
  parser.push(bytes("retry: 2500\n"));
  expect(parser.retry).toBe(2500);
});

test("a message may not grow without an end", () => {
  const line = bytes("data: 0123456789\n");
  const parser = new SseParser();
  expect(() => {
    for (let count = 0; count < 200_000; count += 1) parser.push(line);
  }).toThrow(InvalidStream);
  const unended = new SseParser();
  expect(() => {
    for (let count = 0; count < 200_000; count += 1) unended.push(bytes("0123456789"));
  }).toThrow(InvalidStream);
});
