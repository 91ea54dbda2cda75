import { expect, test } from "bun:test";
import { privateDirectory } from "./private_file.ts";

const directoryOf = (base: string) =>
  privateDirectory({ XDG_CONFIG_HOME: "/config" }, base, "mtls").replace("/config/svc/mtls/", "");

test("the directory of a host is its name", () => {
  expect(directoryOf("https://svc.example.com")).toBe("svc.example.com");
});

test("every address has a directory of its own, with a readable name", () => {
  const bases = [
    "https://svc.example.com",
    "http://svc.example.com",
    "https://svc.example.com:8443",
    "https://svc.example.com/8443",
    "https://svc.example.com/a/b",
    "https://svc.example.com/a_b",
    "https://svc.example.com/A_b",
    "https://[::1]:8000",
    "http://127.0.0.1:8000",
  ];
  const names = bases.map((base) => directoryOf(base).toLowerCase());
  expect(new Set(names).size).toBe(bases.length);
  for (const name of names) expect(name).toMatch(/^[a-z0-9._-]+$/);
  expect(names.at(-1)).toMatch(/^127\.0\.0\.1_8000_[0-9a-f]{12}$/);
});
