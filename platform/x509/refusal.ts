import { Unauthenticated } from "../errors.ts";

/** Why a client certificate is refused. For the operator's log, never for the client. */
export type CertificateReason =
  | "too large"
  | "unreadable"
  | "weak key"
  | "weak signature"
  | "self-signed"
  | "unknown authority"
  | "chain too long"
  | "invalid authority"
  | "outside of the authority's names"
  | "unknown critical extension"
  | "is an authority"
  | "wrong key usage"
  | "wrong extended key usage"
  | "not yet valid"
  | "expired"
  | "revoked"
  | "no user name"
  | "several user names"
  | "invalid user name"
  | "header from an untrusted address"
  | "header on the mTLS port"
  | "malformed header";

/**
 * A refused client certificate. The response says no more than that, except to the holder of a formerly valid certificate,
 * who must get a new one.
 */
export class RefusedCertificate extends Unauthenticated {
  constructor(
    readonly reason: CertificateReason,
    options?: ErrorOptions,
  ) {
    super(answers[reason] ?? "The client certificate is not accepted", options);
  }
}

const answers: Partial<Record<CertificateReason, string>> = {
  expired: "The client certificate has expired",
  revoked: "The client certificate has been revoked",
};
