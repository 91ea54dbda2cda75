import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeServerCertificate } from "../process/openssl.ts";

/** Answers with the names in the client's certificate, or the reason for refusing it. Prints its port when it listens. */
const program = `
const { readFileSync } = require("node:fs");
const [key, cert, ca, crl] = process.argv.slice(1).map((path) => readFileSync(path));
// Node.js reads only one list from each text.
const lists = crl.toString().match(/-----BEGIN[^]*?-----END X509 CRL-----/g);
const options = { key, cert, ca, ...(lists ? { crl: lists } : {}), requestCert: true, rejectUnauthorized: false };
const server = require("node:https").createServer(options, (request, response) => {
  const { authorized, authorizationError } = request.socket;
  if (!authorized) return response.end("refused: " + authorizationError);
  const { subject, subjectaltname } = request.socket.getPeerCertificate();
  response.end(subject.CN + " " + subjectaltname);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`;

export interface ClientCertificateServer extends AsyncDisposable {
  url: string;
  /** The server's certificate, for clients. */
  authorityFile: string;
}

/** A TLS server in Node.js that accepts client certificates of these authorities, except revoked ones (lists in PEM). */
export async function startClientCertificateServer(trusted: {
  ca: string;
  crl?: string;
}): Promise<ClientCertificateServer> {
  const directory = await mkdtemp(join(tmpdir(), "svc-tls-"));
  const at = (name: string) => join(directory, name);
  const { key, cert } = makeServerCertificate(directory);
  await writeFile(at("ca.pem"), trusted.ca);
  await writeFile(at("crl.pem"), trusted.crl ?? "");
  const files = [key, cert, at("ca.pem"), at("crl.pem")];
  const child = Bun.spawn(["node", "-e", program, ...files], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const { value } = await child.stdout.getReader().read();
  if (value === undefined) throw new Error(`node: ${await new Response(child.stderr).text()}`);
  return {
    url: `https://127.0.0.1:${new TextDecoder().decode(value).trim()}`,
    authorityFile: cert,
    [Symbol.asyncDispose]: async () => {
      child.kill();
      await child.exited;
      await rm(directory, { recursive: true, force: true });
    },
  };
}
