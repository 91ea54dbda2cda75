import { expect, test } from "bun:test";
import { mailServerOf } from "./server.ts";

test.each([
  ["smtp://mail.example.com", { host: "mail.example.com", port: 587, secure: false, requireTLS: false }],
  ["smtps://mail.example.com", { host: "mail.example.com", port: 465, secure: true, requireTLS: false }],
  ["smtp://[::1]:25/", { host: "::1", port: 25, secure: false, requireTLS: false }],
  // A password is never sent over a network in clear text.
  [
    "smtp://a%40b:p%2Fss@mail.example.com:25",
    {
      host: "mail.example.com",
      port: 25,
      secure: false,
      requireTLS: true,
      auth: { user: "a@b", pass: "p/ss" },
    },
  ],
  [
    "smtp://a:b@localhost",
    { host: "localhost", port: 587, secure: false, requireTLS: false, auth: { user: "a", pass: "b" } },
  ],
])("%s", (url, expected) => expect<object>(mailServerOf(url)).toEqual(expected));
