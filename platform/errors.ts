/**
 * The closed set of errors that callers may see. Only `server/http/error.ts` maps a code to an HTTP status, and only
 * `cli/run.ts` to an exit code; any other error is reported as `internal`.
 *
 * `detail` is shown to the caller, so it never contains a secret or a message from a library; those go into `cause`.
 */
export class SvcError extends Error {
  constructor(
    readonly code: ErrorCode,
    readonly detail: string,
    options: ErrorOptions = {},
  ) {
    super(detail, options);
    this.name = new.target.name;
  }
}

export type ErrorCode =
  | "invalid_input"
  | "unauthenticated"
  | "forbidden"
  | "not_found"
  | "conflict"
  | "idempotency_key_reused"
  | "too_many_requests"
  | "unavailable"
  | "configuration"
  | "internal";

/** A value sent by the caller is invalid. `field` is its name as the caller knows it. */
export class InvalidInput extends SvcError {
  constructor(
    readonly field: string,
    detail: string,
    options?: ErrorOptions,
  ) {
    super("invalid_input", detail, options);
  }
}

/** No one is signed in, or the token is invalid or expired. */
export class Unauthenticated extends SvcError {
  constructor(detail = "Sign in first: svc login", options?: ErrorOptions) {
    super("unauthenticated", detail, options);
  }
}

/** A token was sent, but it is malformed, expired, revoked or not ours. */
export class InvalidToken extends Unauthenticated {}

/** The user is signed in, but may not do this. */
export class Forbidden extends SvcError {
  constructor(detail: string, options?: ErrorOptions) {
    super("forbidden", detail, options);
  }
}

/** The detail of an answer about a route that does not exist. Clients of other releases recognise it. */
export const noRoute = "There is nothing at this address";

export class NotFound extends SvcError {
  constructor(detail: string, options?: ErrorOptions) {
    super("not_found", detail, options);
  }
}

/** The record is no longer in the required state. */
export class Conflict extends SvcError {
  constructor(detail: string, options?: ErrorOptions) {
    super("conflict", detail, options);
  }
}

/** The record is at another version than the one that the change is based on. */
export class Changed extends Conflict {
  constructor(one: string, version: number | string | null) {
    super(`This ${one} has changed since you read it: it is now at version ${version}`);
  }
}

/** An identical request is in progress; a retry gets its response once it is done. */
export class InProgress extends Conflict {
  constructor(
    /** Whole seconds until a retry makes sense. */
    readonly retryAfter: number,
  ) {
    super(`An identical request is in progress: try again in ${retryAfter} s`);
  }
}

/** An Idempotency-Key was reused for a different request. */
export class KeyReused extends SvcError {
  constructor() {
    super(
      "idempotency_key_reused",
      "This Idempotency-Key was already used for a different request: use a new one",
    );
  }
}

export class TooManyRequests extends SvcError {
  constructor(
    /** Whole seconds until the next attempt can succeed. */
    readonly retryAfter: number,
    detail = `Too many requests: try again in ${retryAfter} s`,
  ) {
    super("too_many_requests", detail);
  }
}

/** A dependency (database, issuer) does not answer, or answers incorrectly. */
export class Unavailable extends SvcError {
  /** The seconds for which the dependency asked us to wait. */
  readonly retryAfter: number | undefined;

  constructor(detail: string, { retryAfter, ...options }: ErrorOptions & { retryAfter?: number } = {}) {
    super("unavailable", detail, options);
    this.retryAfter = retryAfter;
  }
}

/** A dependency has refused permanently, so a retry is pointless. */
export class Refused extends Unavailable {
  readonly permanent = true;
}

/** The configuration is invalid. `faults` lists every problem, each with its variable and the fix. */
export class ConfigurationError extends SvcError {
  constructor(
    readonly faults: readonly string[],
    options?: ErrorOptions,
  ) {
    super("configuration", faults.join("\n"), options);
  }
}
