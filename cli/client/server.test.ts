import { describe, expect, test } from "bun:test";
import { ConfigurationError } from "../../platform/errors.ts";
import { UsageError } from "../errors.ts";
import { chooseServer, isLoopback, parseServer, plainHttpWarning } from "./server.ts";

const none = () => undefined;
const parse = (text: string) => parseServer(text, (fault) => new Error(fault));

test("--server takes precedence over SVC_SERVER, the last server and this machine", () => {
  const last = () => "http://last.example";
  expect(chooseServer("http://a.example", "http://b.example", last).base).toBe("http://a.example");
  expect(chooseServer(undefined, "http://b.example", last).base).toBe("http://b.example");
  expect(chooseServer(undefined, "", last).base).toBe("http://last.example");
  expect(chooseServer(undefined, undefined, none).base).toBe("http://127.0.0.1:8000");
});

test("the credentials file is read only if it decides", () => {
  const last = () => {
    throw new Error("read");
  };
  expect(chooseServer("http://a.example", undefined, last).base).toBe("http://a.example");
});

test("a bad address is a usage error as an option, and a configuration error as a variable", () => {
  expect(() => chooseServer("ftp://a", undefined, none)).toThrow(UsageError);
  expect(() => chooseServer(undefined, "ftp://a", none)).toThrow(ConfigurationError);
  expect(() => chooseServer(undefined, undefined, () => "ftp://a")).toThrow(ConfigurationError);
});

describe("an address", () => {
  test.each([
    ["http://127.0.0.1:8000", "http://127.0.0.1:8000"],
    ["HTTPS://Svc.Example.COM:443/", "https://svc.example.com"],
    ["https://example.com/svc//", "https://example.com/svc"],
    ["http://[::1]:8000", "http://[::1]:8000"],
  ])("%p is %p", (text, base) => {
    expect(parse(text)).toEqual({ base, origin: new URL(base).origin });
  });

  test.each([
    ["example.com", '"example.com" is not an http or https address; did you mean https://example.com?'],
    [
      "localhost:8000",
      '"localhost:8000" is not an http or https address; did you mean http://localhost:8000?',
    ],
    [
      "127.0.0.1:18000",
      '"127.0.0.1:18000" is not an http or https address; did you mean http://127.0.0.1:18000?',
    ],
    ["[::1]:8000", '"[::1]:8000" is not an http or https address; did you mean http://[::1]:8000?'],
    ["10.0.0.7:8000", '"10.0.0.7:8000" is not an http or https address; did you mean https://10.0.0.7:8000?'],
    ["example.com:99999", '"example.com:99999" is not an http or https address'],
    ["file:///etc/passwd", '"file:///etc/passwd" is not an http or https address'],
    ["javascript:alert(1)", '"javascript:alert(1)" is not an http or https address'],
    ["", '"" is not an http or https address'],
    ["http://", '"http://" is not an http or https address'],
    ["https://alice:secret@example.com", "the address must not hold a user name or password"],
    ["https://example.com/?a=1", '"https://example.com/?a=1" must end before "?" and "#"'],
    ["https://example.com/#a", '"https://example.com/#a" must end before "?" and "#"'],
  ])("%p is refused", (text, fault) => {
    expect(() => parse(text)).toThrow(new Error(fault));
  });
});

test("loopback", () => {
  for (const url of [
    "http://localhost",
    "http://127.0.0.1",
    "http://127.9.8.7:80",
    "http://[::1]:1",
    "http://0x7f.1",
  ]) {
    expect(isLoopback(url)).toBeTrue();
  }
  for (const url of [
    "http://127.0.0.1.example.com",
    "http://localhost.example.com",
    "http://10.0.0.1",
    "http://[::2]",
  ]) {
    expect(isLoopback(url)).toBeFalse();
  }
});

test("warns about plain http, except on this machine", () => {
  expect(plainHttpWarning(parse("http://svc.example.com"))).toBe(
    "warning: http://svc.example.com uses plain http, so others on the network can read the token; use https",
  );
  expect(plainHttpWarning(parse("https://svc.example.com"))).toBeUndefined();
  expect(plainHttpWarning(parse("http://127.0.0.1:8000"))).toBeUndefined();
});
