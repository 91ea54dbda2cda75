import { connect, type Socket } from "node:net";
import type { ConnectionOptions, PeerCertificate } from "node:tls";
import { readAddress } from "./address.ts";
import { addressesOf } from "./hosts.ts";
import { primaryOf } from "./sql.ts";

/** What node-postgres takes. */
export interface PgAddress {
  connectionString: string;
  ssl: boolean | ConnectionOptions;
  /** Makes the socket of each connection, where the address names several hosts. */
  stream?: () => Socket;
}

/** A client's first word when it would like TLS; the answer is one letter (PostgreSQL, 54.7: SSLRequest). */
const sslRequest = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]);
const patienceMilliseconds = 10_000;
/** Who is there is not asked: as with libpq and with our own client. */
const unproven = { rejectUnauthorized: false };

/**
 * The same address for node-postgres, which pg-boss brings along: it reads another meaning in `sslmode` (`require` proves
 * who is there, `prefer` insists on TLS), and messages would stop where all else works.
 *
 * @throws when a file that it names cannot be read, or nobody answers who could say whether there is TLS
 */
export async function addressForPg(address: string): Promise<PgAddress> {
  const primary = primaryOf(address);
  if (!primary) return await addressOfOne(address);
  // All of them offer TLS, or none does.
  const { ssl } = await addressOfOne((await primary.find()).address);
  const { connectionString } = await addressOfOne(addressesOf(address)[0]);
  const proves = ssl === true || (typeof ssl === "object" && ssl.rejectUnauthorized !== false);
  const checkServerIdentity = (_: string, certificate: PeerCertificate) => primary.checkIdentity(certificate);
  const encryption = proves ? { checkServerIdentity, ...(ssl === true ? {} : ssl) } : ssl;
  return { connectionString, ssl: encryption, stream: () => primary.stream() };
}

async function addressOfOne(address: string): Promise<PgAddress> {
  const { url: text, ssl } = readAddress(address);
  const url = new URL(text);
  const mode = url.searchParams.get("sslmode");
  url.searchParams.delete("sslmode");
  const connectionString = mode === null ? text : url.href;
  if (typeof ssl === "object") {
    const { variables: _, ...encryption } = ssl;
    return { connectionString, ssl: encryption };
  }
  if (ssl === "verify-full") return { connectionString, ssl: true };
  switch (mode) {
    case null:
    case "disable":
      return { connectionString, ssl: false };
    case "require":
      return { connectionString, ssl: unproven };
    case "allow":
    case "prefer":
      return { connectionString, ssl: (await offersTls(url)) && unproven };
    default:
      return { connectionString, ssl: true };
  }
}

async function offersTls({ hostname, port }: URL): Promise<boolean> {
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 5432) });
  socket.setTimeout(patienceMilliseconds, () => socket.destroy(new Error("no answer")));
  socket.on("connect", () => socket.write(sslRequest));
  socket.on("data", ([letter]) => resolve(letter === "S".charCodeAt(0)));
  socket.on("error", reject);
  socket.on("close", () => reject(new Error("the connection was closed")));
  return await promise.finally(() => socket.destroy());
}
