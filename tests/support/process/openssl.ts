import { join } from "node:path";

/** Both outputs of openssl. */
export function openssl(...args: string[]): string {
  const { stdout, stderr } = Bun.spawnSync(["openssl", ...args]);
  return `${stdout}${stderr}`;
}

/** Makes a self-signed certificate for 127.0.0.1 in the directory. Returns the paths of its key and of itself. */
export function makeServerCertificate(directory: string): { key: string; cert: string } {
  const [key, cert] = [join(directory, "key.pem"), join(directory, "cert.pem")];
  const made = Bun.spawnSync([
    ..."openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2".split(" "),
    ..."-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1".split(" "),
    ...["-keyout", key, "-out", cert],
  ]);
  if (made.exitCode !== 0) throw new Error(`openssl: ${made.stderr}`);
  return { key, cert };
}
