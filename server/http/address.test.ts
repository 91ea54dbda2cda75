import { describe, expect, test } from "bun:test";
import { clientAddress, proxyTrust } from "./address.ts";

const trust = proxyTrust(true, "127.0.0.1, 10.0.0.0/8, 2001:db8::/32");

describe("clientAddress", () => {
  test.each([
    ["203.0.113.9", null, "203.0.113.9"],
    ["127.0.0.1", null, "127.0.0.1"],
    ["127.0.0.1", "203.0.113.9", "203.0.113.9"],
    ["127.0.0.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"],
    ["127.0.0.1", "198.51.100.1, 203.0.113.9, 10.1.2.3", "203.0.113.9"],
    ["127.0.0.1", "10.9.9.9, 10.1.2.3", "10.9.9.9"],
    ["203.0.113.9", "198.51.100.1", "203.0.113.9"],
    ["127.0.0.1", "203.0.113.9:4711", "203.0.113.9"],
    ["127.0.0.1", "[2001:dead::1]:443", "2001:dead::1"],
    ["::ffff:127.0.0.1", "203.0.113.9", "203.0.113.9"],
    ["127.0.0.1", "unknown", "127.0.0.1"],
    ["127.0.0.1", "evil, 10.1.2.3", "10.1.2.3"],
    ["127.0.0.1", "", "127.0.0.1"],
    ["127.0.0.1", ",,,", "127.0.0.1"],
    [undefined, "203.0.113.9", "unknown"],
  ])("seen from %p with %p: %p", (peer, header, expected) => {
    expect(clientAddress(peer, header, trust)).toBe(expected);
  });

  test("trusts nobody by default", () => {
    expect(clientAddress("127.0.0.1", "203.0.113.9", proxyTrust(false, "*"))).toBe("127.0.0.1");
  });

  test("* takes the leftmost entry", () => {
    expect(clientAddress("203.0.113.1", "198.51.100.1, 192.0.2.7", proxyTrust(true, "*"))).toBe(
      "198.51.100.1",
    );
  });
});

test.each([
  "example.com",
  "10.0.0.0/33",
  "10.0.0.0/",
  "10.0.0.0/8/8",
  "::/129",
  "1.2.3.4/-1",
  "1.2.3.4/a",
  "10/8",
  "1.2.3.4/0x8",
  "/8",
])("%p is refused, and named in the error", (entry) => {
  expect(() => proxyTrust(true, `127.0.0.1,${entry}`)).toThrow(`"${entry}"`);
});
