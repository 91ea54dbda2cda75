import { afterAll, expect, spyOn, test } from "bun:test";
import { sign, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { groupsOf, userOf } from "../../core/auth/certificate/identify.ts";
import {
  asAuthority,
  asClient,
  CertificateFolder,
  derOf,
  type Issued,
  type IssueOptions,
  withOtherSignature,
} from "../../tests/support/http/client_certificates.ts";
import { signerId } from "./authorities.ts";
import { verifyChain } from "./chain.ts";
import { derElement, readElement, readElements, SEQUENCE } from "./der.ts";

const certificates = new CertificateFolder();
afterAll(() => certificates[Symbol.dispose]());
const root = certificates.issue({ subject: "/O=Example/CN=Root", extensions: asAuthority });
const middle = certificates.issue({ subject: "/CN=Middle", extensions: asAuthority, by: root });
const required = { at: new Date("2026-01-01"), usage: "1.3.6.1.5.5.7.3.2" };

const verify = (
  chain: readonly Issued[],
  anchors: readonly Issued[] = [root],
  more: Partial<Parameters<typeof verifyChain>[2]> = {},
) =>
  verifyChain(
    chain.map(({ certificate }) => new Uint8Array(derOf(certificate))),
    {
      authorities: anchors.map(({ certificate }) => new X509Certificate(derOf(certificate))),
      revoked: new Map(),
    },
    { ...required, ...more },
  );
const reasonOf = (...args: Parameters<typeof verify>) =>
  verify(...args).then(
    () => "accepted",
    (error) => error.reason ?? String(error),
  );
const leaf = (extensions: readonly string[], by = root, subject = "/CN=alice") =>
  certificates.issue({ subject, by, extensions });

test("reads every name, and the time in which the whole chain is valid", async () => {
  const by = certificates.issue({
    subject: "/CN=Short",
    extensions: asAuthority,
    by: root,
    from: "20210101000000Z",
    to: "20300101000000Z",
  });
  const names =
    "subjectAltName=email:alice@example.com,URI:spiffe://example.com/user/alice,DNS:a.example.com";
  const client = certificates.issue({
    subject: "/O=Example/OU=Platform/OU=Data/CN=alice",
    extensions: [...asClient, names],
    by,
  });
  expect(await verify([client, by])).toEqual({
    id: expect.stringMatching(/^[\w-]{43}$/),
    signer: signerId(new X509Certificate(derOf(by.certificate))),
    emails: ["alice@example.com"],
    uris: ["spiffe://example.com/user/alice"],
    commonNames: ["alice"],
    units: ["Platform", "Data"],
    organisations: ["Example"],
    notBefore: new Date("2021-01-01"),
    notAfter: new Date("2030-01-01"),
    expiresAt: new Date("2099-12-31T23:59:59Z"),
  });
});

test("a certificate with another valid signature is the same one", async () => {
  const whole = derOf(leaf(asClient).certificate);
  const changed = withOtherSignature(whole);
  expect(changed.equals(whole)).toBe(false);
  const trusted = { authorities: [new X509Certificate(derOf(root.certificate))], revoked: new Map() };
  const ids = [whole, changed].map(
    async (one) => (await verifyChain([new Uint8Array(one)], trusted, required)).id,
  );
  const [id, idOfChanged] = await Promise.all(ids);
  expect(idOfChanged).toBe(id!);
});

test("finds its path among certificates in any order, also to an intermediate that is trusted itself", async () => {
  const other = certificates.issue({ subject: "/CN=Other", extensions: asAuthority });
  const client = leaf(asClient, middle);
  expect(await reasonOf([client, other, root, middle])).toBe("accepted");
  expect(await reasonOf([client], [middle])).toBe("accepted");
  expect(await reasonOf([client], [root])).toBe("unknown authority");
  // The same name, another key.
  const impostor = certificates.issue({ subject: "/CN=Middle", extensions: asAuthority });
  expect(await reasonOf([leaf(asClient, impostor), impostor, middle])).toBe("unknown authority");
});

test("finds its path to the certificate of an authority that is valid and permits the names", async () => {
  const again = (more: Partial<IssueOptions> = {}) =>
    certificates.issue({ subject: "/CN=Renewed", extensions: asAuthority, ...more });
  const current = again();
  const of = (more: Partial<IssueOptions>) => again({ keyOf: current, ...more });
  const expired = of({ to: "20250101000000Z" });
  const next = of({ from: "20270101000000Z" });
  const limited = of({
    extensions: [...asAuthority, "nameConstraints=critical,permitted;email:example.org"],
  });
  const client = leaf([...asClient, "subjectAltName=email:alice@example.com"], current);
  expect(await reasonOf([client], [expired, next, limited, current])).toBe("accepted");
  expect(await reasonOf([client], [expired])).toBe("expired");
  expect(await reasonOf([client], [next])).toBe("not yet valid");
  // An expired root, and the certificate of a trusted one for the same key.
  const cross = of({ by: root });
  expect(await reasonOf([client, cross], [expired, root])).toBe("accepted");
});

test("TLS libraries refuse these before we see them, but a proxy might not", async () => {
  expect(await reasonOf([leaf([...asClient, "keyUsage=keyEncipherment"])])).toBe("wrong key usage");
  expect(await reasonOf([leaf([...asAuthority, "extendedKeyUsage=clientAuth"])])).toBe("is an authority");
  expect(await reasonOf([leaf([...asClient, "keyUsage=digitalSignature"])])).toBe("accepted");
  const noise = verifyChain([new Uint8Array([1, 2, 3])], { authorities: [], revoked: new Map() }, required);
  expect(await noise.catch(({ reason }) => reason)).toBe("unreadable");
});

test.each([
  ["prime192v1", "weak key"],
  ["secp224r1", "weak key"],
  ["secp256k1", "weak key"],
  ["secp384r1", "accepted"],
])("a key on the curve %s: %s", async (curve, reason) => {
  const key = ["-algorithm", "EC", "-pkeyopt", `ec_paramgen_curve:${curve}`];
  const client = certificates.issue({ subject: "/CN=alice", by: root, extensions: asClient, key });
  expect(await reasonOf([client])).toBe(reason);
});

test.each([
  ["1024", "weak key"],
  ["2048", "accepted"],
])("an RSA key of %s bits: %s", async (bits, reason) => {
  const key = ["-algorithm", "RSA", "-pkeyopt", `rsa_keygen_bits:${bits}`];
  const client = certificates.issue({ subject: "/CN=alice", by: root, extensions: asClient, key });
  expect(await reasonOf([client])).toBe(reason);
});

test.each([
  ["EC", "sha224", "weak signature"],
  ["EC", "sha384", "accepted"],
  ["RSA", "sha224", "weak signature"],
  ["ED25519", "null", "accepted"],
])("a signature with %s and %s: %s", async (algorithm, digest, reason) => {
  const options = { EC: "ec_paramgen_curve:P-256", RSA: "rsa_keygen_bits:2048" }[algorithm];
  const key = ["-algorithm", algorithm, ...(options ? ["-pkeyopt", options] : [])];
  const selfSigned = algorithm === "ED25519" ? { digest } : {};
  const by = certificates.issue({ subject: "/CN=Signer", extensions: asAuthority, key, ...selfSigned });
  const client = certificates.issue({ subject: "/CN=alice", by, extensions: asClient, digest });
  expect(await reasonOf([client], [by])).toBe(reason);
});

test("an authority needs the right to sign, and a strong key", async () => {
  const authority = (extensions: readonly string[], key?: readonly string[]) =>
    certificates.issue({ subject: `/CN=${crypto.randomUUID()}`, extensions, by: root, key });
  const through = (by: Issued) => reasonOf([leaf(asClient, by), by]);
  // OpenSSL does not count it as an issuer.
  expect(await through(authority(["basicConstraints=CA:TRUE", "keyUsage=cRLSign"]))).toBe(
    "unknown authority",
  );
  expect(
    await through(authority(asAuthority, ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:1024"])),
  ).toBe("weak key");
  expect(await through(authority(asAuthority))).toBe("accepted");
});

test("demands the configured usage of everything below the authority", async () => {
  const usage = "1.3.6.1.4.1.99999.7";
  const special = ["basicConstraints=critical,CA:FALSE", `extendedKeyUsage=clientAuth,${usage}`];
  expect(await reasonOf([leaf(special)], [root], { usage })).toBe("accepted");
  expect(await reasonOf([leaf(asClient)], [root], { usage })).toBe("wrong extended key usage");
  const any = ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=2.5.29.37.0"];
  expect(await reasonOf([leaf(any)])).toBe("wrong extended key usage");
});

test.each([
  ["permitted;email:example.com", "email:a@example.com", true],
  ["permitted;email:example.com", "email:a@sub.example.com", false],
  ["permitted;email:.example.com", "email:a@sub.example.com", true],
  ["permitted;email:a@example.com", "email:b@example.com", false],
  ["excluded;email:example.com", "email:a@EXAMPLE.com", false],
  ["permitted;URI:example.com", "URI:spiffe://example.com/user/a", true],
  ["permitted;URI:example.com", "URI:spiffe://example.org/user/a", false],
  ["permitted;URI:example.com", "URI:spiffe://example.com@example.org/a", false],
  ["permitted;URI:example.com", "URI:urn:example.com", false],
  ["permitted;DNS:example.com", "DNS:a.example.com", true],
  ["permitted;DNS:example.com", "DNS:aexample.com", false],
  ["excluded;IP:0.0.0.0/0.0.0.0", "IP:10.0.0.1", false],
  ["permitted;otherName:1.3.6.1.4.1.311.20.2.3;UTF8:x", "email:a@example.com", false],
])("name constraints: %s, and %s: %p", async (constraint, name, permitted) => {
  const by = certificates.issue({
    subject: `/CN=${crypto.randomUUID()}`,
    by: root,
    extensions: [...asAuthority, `nameConstraints=critical,${constraint}`],
  });
  const reason = await reasonOf([leaf([...asClient, `subjectAltName=${name}`], by), by]);
  expect(reason).toBe(permitted ? "accepted" : "outside of the authority's names");
});

test("name constraints count for a common name that is an e-mail address", async () => {
  const by = certificates.issue({
    subject: "/CN=Mail",
    by: root,
    extensions: [...asAuthority, "nameConstraints=critical,permitted;email:example.com"],
  });
  const of = (name: string) => reasonOf([leaf(asClient, by, `/CN=${name}`), by]);
  expect(await of("alice@example.com")).toBe("accepted");
  expect(await of("alice@example.org")).toBe("outside of the authority's names");
});

test("name constraints count for a common name that becomes an e-mail address of the domain", async () => {
  const by = certificates.issue({
    subject: "/CN=Contractors",
    by: root,
    extensions: [...asAuthority, "nameConstraints=critical,permitted;email:contractors.example.com"],
  });
  const client = leaf(asClient, by, "/CN=alice");
  const of = (domain?: string) => reasonOf([client, by], [root], { domain });
  expect(await of("contractors.example.com")).toBe("accepted");
  expect(await of("example.com")).toBe("outside of the authority's names");
  // The common name identifies no one.
  expect(await of()).toBe("accepted");
});

const signedPart = (der: Uint8Array) => new Uint8Array(readElements(readElement(der, SEQUENCE))[0]!.content);

/** A certificate with this content, which may be damaged, and a valid signature. */
function signedBy({ key, certificate }: Issued, content: Uint8Array): Uint8Array<ArrayBuffer> {
  const part = derElement(SEQUENCE, content);
  // ECDSA with SHA-256, as in every certificate of this file.
  const [, algorithm] = readElements(readElement(derOf(certificate), SEQUENCE));
  const signature = derElement(0x03, Buffer.concat([Buffer.of(0), sign("sha256", part, readFileSync(key))]));
  return new Uint8Array(derElement(SEQUENCE, Buffer.concat([part, algorithm!.raw, signature])));
}

test("damaged certificates are refused, and cause no other error", async () => {
  const extensions = ["nameConstraints=critical,permitted;email:example.com,excluded;IP:0.0.0.0/0.0.0.0"];
  const by = certificates.issue({ subject: "/CN=By", extensions: [...asAuthority, ...extensions], by: root });
  const names = "subjectAltName=email:a@example.com,URI:spiffe://example.com/a,DNS:x.example.com";
  const whole = [leaf([...asClient, names], by), by].map(({ certificate }) => derOf(certificate));
  const trusted = { authorities: [new X509Certificate(derOf(root.certificate))], revoked: new Map() };
  // A linear congruential generator, so that a failure can be repeated.
  let state = 17;
  const below = (limit: number) => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state % limit;
  };
  const reasons = new Set<string>();
  for (let round = 0; round < 1500; round += 1) {
    const chain = whole.map((der) => new Uint8Array(der));
    const place = round % 2;
    const isSigned = round % 4 < 2;
    const one = isSigned ? signedPart(chain[place]!) : chain[place]!;
    for (let changes = 0; changes <= round % 3; changes += 1) one[below(one.length)] = below(256);
    // Only with a valid signature is it parsed completely.
    if (isSigned) chain[place] = signedBy([by, root][place]!, one);
    else if (round % 7 === 0) chain[place] = one.subarray(0, below(one.length));
    reasons.add(
      await verifyChain(chain, trusted, required).then(
        () => "accepted",
        (error) => error.reason ?? String(error.stack),
      ),
    );
  }
  for (const reason of reasons) expect(reason).toMatch(/^[a-z' -]{5,40}$/);
  expect(reasons.size).toBeGreaterThan(3);
});

test("many certificates of one name and key cost a bounded number of signatures", async () => {
  const issue = (keyOf?: Issued) =>
    certificates.issue({ subject: "/CN=Same", extensions: asAuthority, ...(keyOf ? { keyOf } : {}) });
  const first = issue();
  const same = [first, ...Array.from({ length: 5 }, () => issue(first))];
  using verify = spyOn(X509Certificate.prototype, "verify");
  expect(await reasonOf([leaf(asClient, first), ...same])).toBe("chain too long");
  expect(verify.mock.calls.length).toBeLessThanOrEqual(20);
});

test("only certificates with valid signatures up to an authority are parsed completely, which is slow", async () => {
  const stranger = certificates.issue({ subject: "/CN=Root", extensions: asAuthority });
  const malformed = [...asClient, "2.5.29.17=DER:0500"];
  const names = Array.from({ length: 400 }, (_, n) => `email:${n}@example.com`);
  for (const extensions of [malformed, [...asClient, `subjectAltName=${names}`]]) {
    const by = certificates.issue({
      subject: "/CN=Below",
      extensions: [...asAuthority, ...extensions.slice(2)],
      by: stranger,
    });
    expect(await reasonOf([leaf(extensions, by), by])).toBe("unknown authority");
  }
});

test("the user's name is what the settings say, and exactly one", () => {
  const names = {
    emails: ["Alice@Example.com"],
    commonNames: ["bob"],
    uris: ["spiffe://example.com/user/carol", "https://example.com/"],
  };
  const prefix = "spiffe://example.com/user/";
  const of = (mtlsIdentity: "email" | "uri" | "cn", more = {}) =>
    userOf({ ...names, ...more }, { mtlsIdentity, mtlsUriPrefix: prefix, domain: "example.com" });
  expect([of("email"), of("uri"), of("cn")]).toEqual([
    "alice@example.com",
    "carol@example.com",
    "bob@example.com",
  ]);
  expect(() => of("email", { emails: ["alice"] })).toThrow("not accepted");
  expect(() => of("uri", { uris: ["spiffe://example.org/user/carol"] })).toThrow("not accepted");
  expect(() => of("uri", { uris: [`${prefix}a`, `${prefix}b`] })).toThrow("not accepted");
  expect(() => of("uri", { uris: [`${prefix}a/../b`] })).toThrow("not accepted");
  expect(() => of("cn", { commonNames: [] })).toThrow("not accepted");
});

test("groups follow the rules of the settings", () => {
  const verified = {
    units: ["Platform Team"],
    organisations: ["Example"],
    uris: ["spiffe://example.com/ops/x"],
  };
  const of = (mtlsGroups: string | undefined, user = "alice@example.com") =>
    groupsOf(verified, user, mtlsGroups);
  expect(of("ou:Platform Team=oncall, o:Example=staff,uri:spiffe://example.com/ops/=ops")).toEqual([
    "oncall",
    "staff",
    "ops",
  ]);
  expect(of("user:alice@example.com=admin")).toEqual(["admin"]);
  expect(of("user:alice@example.com=admin", "bob@example.com")).toEqual([]);
  // User names are in lower case and composed.
  expect(of("user:Re\u0301mi@Example.com=admin", "r\u00e9mi@example.com")).toEqual(["admin"]);
  expect(of("ou:Platform=oncall")).toEqual([]);
  expect(of(undefined)).toEqual([]);
});
