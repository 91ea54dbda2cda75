import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type SshCertificateFacts, signSshCertificate } from "./certificate.ts";
import { encodeKrl } from "./krl.ts";
import { parseSshPublicKey, sshEd25519Blob, sshFingerprint } from "./public_key.ts";
import { SshReader, sshMpint, sshString } from "./wire.ts";

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "svc-ssh-"));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Returns what ssh-keygen prints, preceded by its exit code unless that is 0. */
function keygen(...args: string[]): string {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["ssh-keygen", ...args], {
    env: { ...process.env, TZ: "UTC" },
  });
  return exitCode === 0 ? stdout.toString() : `${exitCode}: ${stdout}${stderr}`;
}

let made = 0;
/** Generates a key. Returns its `.pub` line and its path. */
async function newKey(...args: string[]): Promise<{ line: string; path: string }> {
  const path = join(directory, `key-${++made}`);
  keygen("-q", "-N", "", "-C", "somebody's key", "-f", path, ...args);
  return { path, line: await Bun.file(`${path}.pub`).text() };
}

function newSigner() {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  return { privateKey, blob: sshEd25519Blob(publicKey) };
}

async function write(name: string, content: string | Uint8Array): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, content);
  return path;
}

const facts = (line: string, more: Partial<SshCertificateFacts> = {}): SshCertificateFacts => ({
  key: parseSshPublicKey(line),
  serial: 4711,
  keyId: "alice@example.com web lease/4711 INC-7",
  principals: ["deploy", "alice@example.com"],
  criticalOptions: {},
  extensions: [],
  validAfter: new Date("2026-01-02T03:04:05Z"),
  validBefore: new Date("2026-01-02T04:04:05Z"),
  ...more,
});

describe("a certificate", () => {
  test.each([
    ["ed25519", ["-t", "ed25519"]],
    ["ecdsa 256", ["-t", "ecdsa", "-b", "256"]],
    ["ecdsa 384", ["-t", "ecdsa", "-b", "384"]],
    ["ecdsa 521", ["-t", "ecdsa", "-b", "521"]],
    ["rsa 3072", ["-t", "rsa", "-b", "3072"]],
  ])("for a key of type %s has every field in the output of ssh-keygen", async (_, args) => {
    const { line } = await newKey(...args);
    const signer = newSigner();
    const path = await write(
      "shown-cert.pub",
      signSshCertificate(
        facts(line, {
          criticalOptions: { "source-address": "192.0.2.0/24,2001:db8::/32", "force-command": "uptime" },
          extensions: ["permit-pty", "permit-X11-forwarding", "permit-agent-forwarding"],
        }),
        signer,
      ),
    );
    const { type, blob } = parseSshPublicKey(line);
    const shown = keygen("-L", "-f", path);
    expect(shown.split("\n").map((one) => one.trim())).toEqual([
      `${path}:`,
      `Type: ${type}-cert-v01@openssh.com user certificate`,
      expect.stringContaining(sshFingerprint(blob)),
      `Signing CA: ED25519 ${sshFingerprint(signer.blob)} (using ssh-ed25519)`,
      'Key ID: "alice@example.com web lease/4711 INC-7"',
      "Serial: 4711",
      "Valid: from 2026-01-02T03:04:05 to 2026-01-02T04:04:05",
      "Principals:",
      "deploy",
      "alice@example.com",
      "Critical Options:",
      "force-command uptime",
      "source-address 192.0.2.0/24,2001:db8::/32",
      "Extensions:",
      "permit-X11-forwarding",
      "permit-agent-forwarding",
      "permit-pty",
      "",
    ]);
  });

  test("equals a certificate by ssh-keygen, except for the nonce and the signature", async () => {
    const ca = await newKey("-t", "ed25519");
    const { line, path } = await newKey("-t", "ed25519");
    const validity = "20260102030405Z:20260102040405Z";
    keygen(
      "-q",
      "-s",
      ca.path,
      "-I",
      "the id",
      "-n",
      "deploy",
      "-V",
      validity,
      "-z",
      "9",
      "-O",
      "clear",
      "-O",
      "permit-pty",
      "-O",
      "permit-port-forwarding",
      "-O",
      "source-address=192.0.2.1/32",
      `${path}.pub`,
    );
    const theirs = Buffer.from((await Bun.file(`${path}-cert.pub`).text()).split(" ")[1]!, "base64");
    const { privateKey } = newSigner();
    const signer = { privateKey, blob: parseSshPublicKey(ca.line).blob };
    const ours = signSshCertificate(
      facts(line, {
        serial: 9,
        keyId: "the id",
        principals: ["deploy"],
        extensions: ["permit-pty", "permit-port-forwarding"],
        criticalOptions: { "source-address": "192.0.2.1/32" },
      }),
      signer,
    );
    const bytes = Buffer.from(ours.split(" ")[1]!, "base64");
    const nonceAt = sshString("ssh-ed25519-cert-v01@openssh.com").length + 4;
    for (const one of [theirs, bytes]) one.fill(0, nonceAt, nonceAt + 32).fill(0, one.length - 64);
    expect(bytes.toString("hex")).toBe(theirs.toString("hex"));
  });

  test("without principals is refused, because it would be valid for every account", async () => {
    const { line } = await newKey("-t", "ed25519");
    expect(() => signSshCertificate(facts(line, { principals: [] }), newSigner())).toThrow("principals");
  });
});

describe("a public key is refused", () => {
  const line = (type: string, ...fields: Uint8Array[]) =>
    `${type} ${Buffer.concat([sshString(type), ...fields]).toString("base64")}`;
  const rsa = (bits: number, e = Buffer.of(1, 0, 1)) => {
    const modulus = Buffer.alloc(bits / 8, 0xff);
    return line("ssh-rsa", sshMpint(e), sshMpint(modulus));
  };
  const point = Buffer.concat([Buffer.of(4), Buffer.alloc(64, 1)]);
  const good = line("ssh-ed25519", sshString(Buffer.alloc(32, 7)));
  const refusals: [string, string, string][] = [
    ["that is empty", "", "not a line"],
    ["that is private", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n", "not a line"],
    ["with two lines", `${good}\n${good}`, "not a line"],
    ["with options before the key", `command="x" ${good}`, "not a line"],
    ["whose two types differ", good.replace(/^ssh-ed25519/, "ssh-rsa"), "two different types"],
    [
      "with trailing bytes",
      line("ssh-ed25519", sshString(Buffer.alloc(32)), sshString("x")),
      "not encoded canonically",
    ],
    ["truncated", line("ssh-ed25519", Buffer.of(0, 0, 0, 32, 1)), "truncated"],
    ["with a length of 4 GB", line("ssh-ed25519", Buffer.alloc(4, 0xff)), "truncated"],
    ["of type Ed25519 with 31 bytes", line("ssh-ed25519", sshString(Buffer.alloc(31))), "32 bytes"],
    ["of type RSA with 2048 bits", rsa(2048), "at least 3072 bits, and this one has 2048"],
    ["of type RSA with 3064 bits", rsa(3064), "this one has 3064"],
    ["of type RSA with 16392 bits", rsa(16_392), "at most 16384"],
    ["of type RSA with an exponent of 3", rsa(3072, Buffer.of(3)), "exponent or modulus is invalid"],
    [
      "of type RSA with leading zeros",
      line("ssh-rsa", sshString(Buffer.of(0, 1, 0, 1)), sshMpint(Buffer.alloc(384, 0xff))),
      "not encoded canonically",
    ],
    ["of type DSA", line("ssh-dss", sshMpint(Buffer.of(1))), "type is ssh-dss"],
    ["that is a certificate", line("ssh-ed25519-cert-v01@openssh.com", sshString("x")), "its type is"],
    [
      "with a point off its curve",
      line("ecdsa-sha2-nistp256", sshString("nistp256"), sshString(point)),
      "not on the curve",
    ],
    [
      "with the curve of another type",
      line("ecdsa-sha2-nistp256", sshString("nistp384"), sshString(point)),
      "not on the curve",
    ],
    ["with extra base64 padding", `${good}=`, "base64"],
  ];
  test.each(refusals)("%s", (_, text, why) => {
    expect(() => parseSshPublicKey(text)).toThrow(why);
  });
});

describe("a KRL", () => {
  test("revokes only the given serial numbers of one signing key, according to ssh-keygen -Q", async () => {
    const { line } = await newKey("-t", "ed25519");
    const [signer, other] = [newSigner(), newSigner()];
    const serials = [70_000, 3, 4_000_000_000_000, 3];
    const krl = await write(
      "krl",
      encodeKrl({
        version: 12,
        at: new Date(),
        revoked: [{ blob: signer.blob, serials }],
        keys: [],
        comment: "test",
      }),
    );
    const isRevoked = async (by: typeof signer, serial: number) => {
      const path = await write("asked-cert.pub", signSshCertificate(facts(line, { serial }), by));
      const shown = keygen("-Q", "-f", krl, path);
      expect(shown).toMatch(/: (ok|REVOKED)\n/);
      return shown.includes("REVOKED");
    };
    for (const serial of serials) expect([serial, await isRevoked(signer, serial)]).toEqual([serial, true]);
    expect([await isRevoked(signer, 4), await isRevoked(other, 3)]).toEqual([false, false]);
    expect(keygen("-Q", "-l", "-f", krl)).toContain("serial: 3\n");
  });

  test("revokes a signing key with everything it signed", async () => {
    const { line } = await newKey("-t", "ed25519");
    const [signer, other] = [newSigner(), newSigner()];
    const krl = encodeKrl({ version: 1, at: new Date(), revoked: [], keys: [signer.blob], comment: "" });
    const path = await write("krl-keys", krl);
    const isRevoked = async (by: typeof signer) =>
      keygen("-Q", "-f", path, await write("a-cert.pub", signSshCertificate(facts(line), by))).includes(
        "REVOKED",
      );
    expect([await isRevoked(signer), await isRevoked(other)]).toEqual([true, false]);
  });

  test("can be empty", async () => {
    const empty = encodeKrl({ version: 1, at: new Date(), revoked: [], keys: [], comment: "" });
    const { path } = await newKey("-t", "ed25519");
    expect(keygen("-Q", "-f", await write("krl-empty", empty), `${path}.pub`)).toContain("ok");
  });
});

test("SshReader reads a string and throws at the end", () => {
  const reader = new SshReader(sshString("äbc"));
  expect(reader.text()).toBe("äbc");
  expect(() => reader.bytesOf(1)).toThrow(RangeError);
  expect(sshMpint(Buffer.of(0, 0x80)).toString("hex")).toBe("000000020080");
  expect(createPublicKey(newSigner().privateKey).type).toBe("public");
});
