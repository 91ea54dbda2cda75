import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { eq } from "drizzle-orm";
import { thumbprintOf } from "../../core/auth/certificate/certificate.ts";
import { x509RevocationLists } from "../../core/authority/x509_revocation_list.ts";
import { clientCertificate, token } from "../../drizzle/schema/index.ts";
import { type CertificateServer, useCertificateServer } from "../../tests/support/http/certificate_server.ts";
import { openssl } from "../../tests/support/process/openssl.ts";
import { processorMilliseconds } from "../../tests/support/process/processor_time.ts";

// The revocation lists of client certificates.

let { server, context, file, newUser, issue } = {} as CertificateServer;
useCertificateServer((given) => {
  ({ server, context, file, newUser, issue } = given);
});

test("the revocation list contains the revoked certificates", async () => {
  const [kept, revoked] = [await issue(), await issue()];
  await revoked.person.call("DELETE", `/certificates/${revoked.serial}`);
  const [url] = /http\S+/.exec(
    openssl("x509", "-noout", "-ext", "crlDistributionPoints", "-in", await file(revoked.certificate)),
  )!;
  const der = await file(await (await fetch(url!)).bytes());
  const text = openssl("crl", "-inform", "DER", "-noout", "-text", "-in", der).toLowerCase();
  expect([text.includes(revoked.serial), text.includes(kept.serial)]).toEqual([true, false]);
});

test("revocation lists are signed, have increasing numbers, and are not sent again unchanged", async () => {
  const revoked = await issue();
  const authority = await file(revoked.chain);
  const read = async () => {
    const { lists, digest } = (await x509RevocationLists(context, "client"))!;
    const path = await file([...lists.values()].at(-1)!);
    const text = openssl("crl", "-inform", "DER", "-in", path, "-CAfile", authority, "-noout", "-text");
    const at = (field: string) => Date.parse(new RegExp(`${field} Update: (.+)`).exec(text)![1]!);
    const number = BigInt(/CRL Number:\s+(\S+)/.exec(text)![1]!);
    const has = text.toLowerCase().includes(revoked.serial);
    return { text, number, hours: (at("Next") - at("Last")) / 3_600_000, has, digest };
  };
  const before = await read();
  await revoked.person.call("DELETE", `/certificates/${revoked.serial}`);
  const after = await read();
  expect([before.has, after.has]).toEqual([false, true]);
  expect(after.number).toBeGreaterThan(before.number);
  expect(after.digest).not.toBe(before.digest);
  for (const { text, hours } of [before, after]) {
    expect(text).toContain("verify OK");
    expect(hours).toBeCloseTo(48, 0);
  }
  const fetchList = (headers = {}) => server.fetch("/access/x509/client/crl.pem", { headers });
  const first = await fetchList();
  expect(first.headers.get("cache-control")).toBe("public, max-age=5");
  const again = await fetchList({ "if-none-match": first.headers.get("etag")! });
  expect([again.status, await again.text()]).toEqual([304, ""]);
});

test("two revocation lists of one second have different numbers", async () => {
  await issue();
  const numbers = new Set<string>();
  for (let list = 0; list < 20; list += 1) {
    const { lists } = (await x509RevocationLists(context, "client"))!;
    const path = await file([...lists.values()].at(-1)!);
    numbers.add(openssl("crl", "-inform", "DER", "-in", path, "-noout", "-crlnumber").trim());
  }
  expect(numbers.size).toBe(20);
});

test("a revocation list of 10,000 certificates does not hold up the server", async () => {
  const { sha256 } = await issue();
  const [one] = await server.db.select().from(clientCertificate).where(eq(clientCertificate.sha256, sha256));
  const jti = crypto.randomUUID();
  const now = server.clock.now();
  const many = {
    userName: newUser(),
    groups: [],
    issuedAt: now,
    expiresAt: new Date(now.getTime() + 3_600_000),
    revokedAt: now,
  };
  await server.db.insert(token).values({ jti, ...many });
  const { id: _, ...row } = one!;
  const rows = Array.from({ length: 10_000 }, (_, at) => ({
    ...row,
    jti,
    sha256: thumbprintOf(Buffer.from(String(at))),
    serial: createHash("sha1").update(String(at)).digest("hex"),
  }));
  for (let at = 0; at < rows.length; at += 2000)
    await server.db.insert(clientCertificate).values(rows.slice(at, at + 2000));
  const before = process.cpuUsage();
  const { lists } = (await x509RevocationLists(context, "client"))!;
  expect(processorMilliseconds(before)).toBeLessThan(1000);
  const list = [...lists.values()].at(-1)!;
  expect(list.length).toBeLessThan(500_000);
  const path = await file(list);
  const text = openssl("crl", "-inform", "DER", "-in", path, "-noout", "-text").toLowerCase();
  // A set: searching the text for each of them takes longer than everything else here.
  const listed = new Set(text.match(/(?<=serial number: )[0-9a-f]+/g));
  expect(rows.filter(({ serial }) => !listed.has(serial.replace(/^(00)+/, "")))).toEqual([]);
  await server.db.delete(token).where(eq(token.jti, jti));
});
