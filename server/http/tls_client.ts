import type { SocketAddress } from "bun";

/** A client of the mTLS port, which proved in the handshake that it holds the key of its certificate. */
export interface TlsClient {
  address: SocketAddress;
  /** The certificate in DER, then those that the client sent with it. Empty without a certificate. */
  chain: readonly Uint8Array[];
}

/**
 * Only the listener writes here, by the connection that a request came on. No header is involved, so no client can claim
 * another one's certificate.
 */
const clients = new WeakMap<Request, TlsClient>();

/** Records the connection of a request. For the listener only. */
export function setTlsClient(request: Request, client: TlsClient): void {
  clients.set(request, client);
}

/** The client of a request, if it came through the mTLS port. */
export function tlsClientOf(request: Request): TlsClient | undefined {
  return clients.get(request);
}
