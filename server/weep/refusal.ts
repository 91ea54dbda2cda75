import { type ErrorCode, SvcError } from "../../platform/errors.ts";
import { RefusedCertificate } from "../../platform/x509/refusal.ts";

// Weep compares `code` with these texts, and shows the rest of the body only if none of them match.

/** Weep's error codes. */
export const weepCodes = {
  invalidArn: "899",
  noMatch: "900",
  severalMatches: "901",
  notIssued: "902",
  badBody: "904",
  /** Makes Weep renew its certificate, if configured. */
  refusedCertificate: "905",
  unknownAccount: "906",
  /** Makes Weep discard its token and sign in again. */
  invalidToken: "invalid_jwt",
} as const;
export type WeepCode = (typeof weepCodes)[keyof typeof weepCodes];

/** An error with a code that Weep knows. */
export class WeepRefusal extends SvcError {
  constructor(
    readonly weepCode: WeepCode,
    code: ErrorCode,
    detail: string,
    readonly requestedRole: string,
    options?: ErrorOptions,
  ) {
    super(code, detail, options);
  }
}

export const isWeepPath = (path: string): boolean => /^\/api\/v[12]\//.test(path);

/**
 * The body of an error on Weep's paths. Weep has two decoders: the one for credentials reads `code` and `message`, the
 * one for pages reads `errors`. Both fail if `code` or `status` is a number.
 */
export function weepProblem(
  error: unknown,
  { code, detail }: { code: string; detail: string },
  requestId: string,
) {
  const refused = error instanceof RefusedCertificate ? weepCodes.refusedCertificate : undefined;
  const known = error instanceof WeepRefusal ? error : undefined;
  const codes: Record<string, WeepCode> = {
    unauthenticated: weepCodes.invalidToken,
    invalid_input: weepCodes.badBody,
    body_too_large: weepCodes.badBody,
    unsupported_media_type: weepCodes.badBody,
    unavailable: weepCodes.notIssued,
    internal: weepCodes.notIssued,
  };
  return {
    status: "error",
    code: known?.weepCode ?? refused ?? codes[code] ?? code,
    message: detail,
    errors: [detail],
    requested_role: known?.requestedRole ?? "",
    request_id: requestId,
  };
}
