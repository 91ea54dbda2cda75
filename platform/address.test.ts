import { describe, expect, test } from "bun:test";
import { addressScope, hostInUrl, isInScope, isNetwork, plainAddress } from "./address.ts";

describe("addressScope", () => {
  test.each([
    ["192.0.2.1", "192.0.2.1"],
    ["::ffff:192.0.2.1", "192.0.2.1"],
    ["::ffff:c000:201", "192.0.2.1"],
    ["127.0.0.1", "loopback"],
    ["127.8.9.1", "loopback"],
    ["::1", "loopback"],
    ["0:0:0:0:0:0:0:1", "loopback"],
    ["::ffff:127.0.0.1", "loopback"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:DB8:1:2::9", "2001:db8:1:2::/64"],
    ["2001:0db8:0001:0002:0003::", "2001:db8:1:2::/64"],
    ["::2:3:4:5:6:7:8", "0:2:3:4::/64"],
    ["1::", "1:0:0:0::/64"],
    ["::", "0:0:0:0::/64"],
    ["::192.0.2.1", "0:0:0:0::/64"],
    ["64:ff9b::192.0.2.1", "64:ff9b:0:0::/64"],
    ["127.1", "unknown"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["", "unknown"],
    ["unknown", "unknown"],
    ["1.2.3", "unknown"],
    ["1.2.3.4.5", "unknown"],
    ["::1::", "unknown"],
  ])("of %p is %p", (address, scope) => {
    expect(addressScope(address)).toBe(scope);
  });

  test("differs for addresses that only share a prefix", () => {
    expect(addressScope("2001:db8::1")).not.toBe(addressScope("2001:db8:0:1::1"));
    expect(addressScope("192.0.2.1")).not.toBe(addressScope("192.0.2.10"));
  });
});

test("an unknown address matches no other unknown address", () => {
  expect(isInScope("unknown", addressScope("unknown"))).toBe(false);
  expect(isInScope("192.0.2.1", addressScope("192.0.2.1"))).toBe(true);
});

test("plainAddress removes brackets and zones, and rejects invalid addresses", () => {
  expect(plainAddress(" [2001:db8::1] ")).toBe("2001:db8::1");
  expect(plainAddress("fe80::1%lo")).toBe("fe80::1");
  expect(plainAddress("2001:0DB8:0::1")).toBe("2001:db8::1");
  expect(plainAddress("example.com")).toBeUndefined();
});

test.each([
  ["127.0.0.1", "127.0.0.1"],
  ["::1", "[::1]"],
  // Some users type brackets.
  ["[::1]", "[::1]"],
])("%s in a URL is %s", (host, text) => expect(hostInUrl(host)).toBe(text));

test.each([
  ["192.0.2.1", true],
  ["192.0.2.0/24", true],
  ["192.0.2.1/32", true],
  ["0.0.0.0/0", true],
  ["::1", true],
  ["2001:db8::/32", true],
  ["::ffff:10.0.0.0/104", true],
  ["192.0.2.1/24", false],
  ["192.0.2.0/33", false],
  ["2001:db8::1/32", false],
  ["::/129", false],
  ["fe80::1%eth0", false],
  ["10/8", false],
  ["localhost", false],
])("isNetwork(%j) is %j, as in ssh-keygen", (text, expected) => {
  expect(isNetwork(text)).toBe(expected);
});
