import type { Server } from "bun";
import { thumbprintOf } from "../../core/auth/certificate/certificate.ts";
import { identifyCertificate } from "../../core/auth/certificate/identify.ts";
import type { Actor } from "../../core/context.ts";
import { plainAddress } from "../../platform/address.ts";
import { LogBudget } from "../../platform/log_budget.ts";
import { type CertificateReason, RefusedCertificate } from "../../platform/x509/refusal.ts";
import { addressOf, type Deps } from "../deps.ts";
import { tlsClientOf } from "../http/tls_client.ts";
import { forwardedChain, forwardedHeaders } from "./forwarded_certificate.ts";

const refusalsPerMinute = 60;
/** Reasons to refuse a certificate even where only its key matters. */
const ended: readonly CertificateReason[] = ["revoked", "expired", "not yet valid"];

type Chain = readonly Uint8Array[];

/** The client certificates of requests, from the mTLS port or from a trusted proxy. */
class PresentedCertificates {
  readonly #refused: LogBudget;

  constructor(private readonly deps: Deps) {
    this.#refused = new LogBudget(deps.log, deps.clock, "client certificates", refusalsPerMinute);
  }

  /** The certificate of a request, with those sent along. @throws RefusedCertificate for a header that nobody may send */
  chainOf(request: Request, server: Server<unknown> | null): Chain | undefined {
    const tls = tlsClientOf(request);
    const { headers } = request;
    const { mtlsProxyHeader } = this.deps.config;
    const names = forwardedHeaders(mtlsProxyHeader);
    const forwarded = names.some((name) => headers.has(name));
    if (!forwarded) return tls && tls.chain.length > 0 ? tls.chain : undefined;
    try {
      // The connection's certificate would be the proxy's.
      if (tls) throw new RefusedCertificate("header on the mTLS port");
      const peer = plainAddress(server?.requestIP(request)?.address ?? "");
      const { proxies } = this.deps;
      if (!mtlsProxyHeader || !proxies.enabled || peer === undefined || !proxies.trusts(peer))
        throw new RefusedCertificate("header from an untrusted address");
      return forwardedChain(headers, mtlsProxyHeader);
    } catch (error) {
      throw this.#logged(error, { request, server });
    }
  }

  /** The user of a certificate. @throws RefusedCertificate */
  async identify(chain: Chain, request: Request, server: Server<unknown> | null): Promise<Actor> {
    try {
      return await identifyCertificate(this.deps, chain);
    } catch (error) {
      throw this.#logged(error, { chain, request, server });
    }
  }

  /**
   * Refuses the certificate that a token is bound to if it has expired or was revoked. Its user does not matter: according
   * to RFC 8705, holding its key is enough.
   * @returns when it expires, if that is known
   * @throws RefusedCertificate
   */
  async requireCurrent(
    chain: Chain,
    request: Request,
    server: Server<unknown> | null,
  ): Promise<Date | undefined> {
    try {
      return (await identifyCertificate(this.deps, chain)).expiresAt;
    } catch (error) {
      if (!(error instanceof RefusedCertificate)) throw error;
      if (ended.includes(error.reason)) throw this.#logged(error, { chain, request, server });
      return undefined;
    }
  }

  /** Logs why a certificate is refused, since the response does not say. */
  #logged(
    error: unknown,
    { chain, request, server }: { chain?: Chain; request: Request; server: Server<unknown> | null },
  ): unknown {
    if (!(error instanceof RefusedCertificate)) return error;
    const { reason } = error;
    if (!this.#refused.admits(reason, { reason })) return error;
    this.deps.log.warn(
      {
        reason,
        certificate: chain && thumbprintOf(chain[0]!),
        address: addressOf(this.deps, request, server),
      },
      "client certificate refused",
    );
    return error;
  }
}

/** One per application. */
const ofDeps = new WeakMap<Deps, PresentedCertificates>();

export function presentedCertificates(deps: Deps): PresentedCertificates {
  const known = ofDeps.get(deps) ?? new PresentedCertificates(deps);
  ofDeps.set(deps, known);
  return known;
}
