import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { useOwnServer } from "../../../tests/support/http/serving.ts";

const own = useOwnServer({ SVC_PUBLIC_URL: "https://svc.example.com" });
const warning = "if a proxy ends TLS, every client has its address";

test("warns about https without --proxy-headers, unless this server terminates TLS", async () => {
  const [key, cert] = [join(own.path, "key.pem"), join(own.path, "cert.pem")];
  const subject = ["-subj", "/CN=svc.example.com", "-days", "2"];
  const made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, ...subject];
  expect(spawnSync("openssl", made).status).toBe(0);
  for (const [args, warned] of [
    [[], true],
    [["--proxy-headers"], false],
    [["--ssl-keyfile", key, "--ssl-certfile", cert], false],
  ] as const) {
    await using server = await own.start(args);
    await server.says("listening on ");
    expect([args, (await server.end()).stderr.includes(warning)]).toEqual([args, warned]);
  }
});
