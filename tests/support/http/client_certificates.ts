import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { derElement, readElement, readElements } from "../../../platform/x509/der.ts";

/** The files of a certificate and its key. */
export interface Issued {
  name: string;
  certificate: string;
  key: string;
  /** The certificate followed by its intermediates, without the root, as a client sends them. */
  chain: string;
}

export interface IssueOptions {
  subject?: string;
  /** The lines of an OpenSSL extension section. */
  extensions?: readonly string[];
  by?: Issued;
  /** The arguments of `openssl genpkey`. */
  key?: readonly string[];
  /** Such as `20260101000000Z`. */
  from?: string;
  to?: string;
  digest?: string;
  /** Reuses the key of another certificate. */
  keyOf?: Issued;
}

export const asAuthority = ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign"];
export const asClient = ["basicConstraints=critical,CA:FALSE", "extendedKeyUsage=clientAuth"];
const p256 = ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"];

/** Creates keys and certificates with openssl in a new folder. */
export class CertificateFolder {
  readonly path = mkdtempSync(join(tmpdir(), "svc-certificates-"));
  #made = 0;

  at(name: string): string {
    return join(this.path, name);
  }

  run(...args: string[]): string {
    const { success, stdout, stderr } = Bun.spawnSync(["openssl", ...args], { cwd: this.path });
    if (!success) throw new Error(`openssl ${args[0]}: ${stderr}`);
    return stdout.toString();
  }

  /** Issues a certificate, signed by `by` or self-signed. */
  issue({
    subject = "/CN=alice@example.com",
    extensions = asClient,
    by,
    key = p256,
    keyOf,
    from = "20200101000000Z",
    to = "20991231235959Z",
    digest = "sha256",
  }: IssueOptions = {}): Issued {
    this.#made += 1;
    const name = `certificate-${this.#made}`;
    const [certificate, keyFile] = [this.at(`${name}.pem`), this.at(`${name}.key`)];
    if (keyOf) copyFileSync(keyOf.key, keyFile);
    else this.run("genpkey", ...key, "-out", keyFile);
    // In OpenSSL 3.0, only `openssl ca` accepts both dates.
    writeFileSync(this.at(`${name}.index`), "");
    writeFileSync(
      this.at(`${name}.cnf`),
      [
        "[ca]\ndefault_ca=one\n[one]",
        `database=${name}.index`,
        "rand_serial=yes",
        `new_certs_dir=${this.path}`,
        "policy=any",
        "x509_extensions=extensions",
        "unique_subject=no",
        "[any]",
        ...["O", "OU", "CN"].map(
          (field) =>
            `${{ O: "organizationName", OU: "organizationalUnitName", CN: "commonName" }[field]}=optional`,
        ),
        "[req]\ndistinguished_name=dn\n[dn]\n[extensions]",
        ...extensions,
        "",
      ].join("\n"),
    );
    const config = ["-config", `${name}.cnf`];
    this.run("req", "-new", ...config, "-key", keyFile, "-subj", subject, "-utf8", "-out", `${name}.csr`);
    const signer = by ? ["-cert", by.certificate, "-keyfile", by.key] : ["-selfsign", "-keyfile", keyFile];
    this.run(
      "ca",
      "-batch",
      "-notext",
      "-preserveDN",
      "-utf8",
      ...config,
      "-in",
      `${name}.csr`,
      "-out",
      certificate,
      "-startdate",
      from,
      "-enddate",
      to,
      "-md",
      digest,
      ...signer,
    );
    const chain = this.at(`${name}-chain.pem`);
    const above = by && readFileSync(by.chain, "utf8");
    writeFileSync(chain, readFileSync(certificate, "utf8") + (by && !isRoot(by) ? above : ""));
    if (!by) roots.add(chain);
    return { name, certificate, key: keyFile, chain };
  }

  /** Creates a revocation list in PEM, of certificates or serial numbers (hexadecimal, in upper case). */
  revocationList(
    by: Issued,
    revoked: readonly (Issued | string)[],
    options: readonly string[] = ["-md", "sha256"],
  ): string {
    const name = `list-${++this.#made}`;
    const serials = revoked.map((one) =>
      typeof one === "string"
        ? one
        : this.run("x509", "-in", one.certificate, "-noout", "-serial").trim().replace("serial=", ""),
    );
    const rows = serials.map((serial) => `R\t991231235959Z\t250101000000Z\t${serial}\tunknown\t/CN=x\n`);
    writeFileSync(this.at(`${name}.index`), rows.join(""));
    const lines = ["[ca]\ndefault_ca=one\n[one]", `database=${name}.index`, "unique_subject=no", ""];
    writeFileSync(this.at(`${name}.cnf`), lines.join("\n"));
    const signer = ["-cert", by.certificate, "-keyfile", by.key, ...options, "-crldays", "1"];
    this.run("ca", "-config", `${name}.cnf`, "-gencrl", ...signer, "-out", `${name}.crl`);
    return readFileSync(this.at(`${name}.crl`), "utf8");
  }

  /** Issues a certificate for a server on 127.0.0.1 and localhost. */
  server(): Issued {
    return this.issue({
      subject: "/CN=localhost",
      extensions: ["subjectAltName=DNS:localhost,IP:127.0.0.1"],
    });
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

const roots = new Set<string>();
const isRoot = ({ chain }: Issued) => roots.has(chain);

/** The first certificate of a file in DER. */
export function derOf(file: string): Buffer {
  const [, base64 = ""] = readFileSync(file, "utf8").match(/-----BEGIN CERTIFICATE-----(.+?)-----END/s) ?? [];
  return Buffer.from(base64, "base64");
}

/** The same certificate (DER) with its other valid signature: ECDSA with P-256 has two, and anybody can compute one from the other. */
export function withOtherSignature(whole: Uint8Array): Buffer {
  const [signed, algorithm, signature] = readElements(readElement(whole, 0x30));
  const [r, s] = readElements(readElement(signature!.content.subarray(1), 0x30));
  const order = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  const other = (order - BigInt(`0x${Buffer.from(s!.content).toString("hex")}`)).toString(16);
  // As DER demands: as few bytes as possible, and without the sign bit.
  const bytes = Buffer.from(other.padStart(other.length + (other.length % 2), "0"), "hex");
  const minimal = bytes[0]! >= 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
  const changed = derElement(0x30, Buffer.concat([r!.raw, derElement(0x02, minimal)]));
  const bits = derElement(0x03, Buffer.concat([Buffer.of(0), changed]));
  return derElement(0x30, Buffer.concat([signed!.raw, algorithm!.raw, bits]));
}

/** The `x5t#S256` of the first certificate of a file (RFC 8705). */
export function thumbprintOf(file: string): string {
  return new Bun.CryptoHasher("sha256").update(derOf(file)).digest("base64url");
}

/** The option `tls` of fetch. Connections with the same certificate are reused unless `keepalive` is false. */
export function tlsWith(client?: Issued) {
  return {
    rejectUnauthorized: false,
    ...(client ? { cert: readFileSync(client.chain, "utf8"), key: readFileSync(client.key, "utf8") } : {}),
  };
}
