/**
 * The closed set of failures that a caller may be told about. `server/http/error.ts` alone turns a code into an HTTP
 * status and `cli/run.ts` alone into an exit code; whatever is not a `SvcError` is shown as `internal`.
 *
 * `detail` is shown to the caller, so it never holds a secret or a message from a library; that goes into `cause`.
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

/** A value that the caller sent cannot be accepted. `field` is the name the caller knows it by. */
export class InvalidInput extends SvcError {
  constructor(
    readonly field: string,
    detail: string,
    options?: ErrorOptions,
  ) {
    super("invalid_input", detail, options);
  }
}

/** Nobody is signed in, or the token is not (or no longer) good. */
export class Unauthenticated extends SvcError {
  constructor(detail = "Sign in first: svc login", options?: ErrorOptions) {
    super("unauthenticated", detail, options);
  }
}

/** Somebody is signed in, but may not do this. */
export class Forbidden extends SvcError {
  constructor(detail: string, options?: ErrorOptions) {
    super("forbidden", detail, options);
  }
}

export class NotFound extends SvcError {
  constructor(detail: string, options?: ErrorOptions) {
    super("not_found", detail, options);
  }
}

/** The record is no longer in the state that the change needs. */
export class Conflict extends SvcError {
  constructor(detail: string, options?: ErrorOptions) {
    super("conflict", detail, options);
  }
}

/** The very same request is being worked on; when that is done, a retry gets its answer. */
export class InProgress extends Conflict {
  constructor(
    /** Whole seconds until a retry makes sense. */
    readonly retryAfter: number,
  ) {
    super(`The same request is being worked on: try again in ${retryAfter} s`);
  }
}

/** An Idempotency-Key came back with another request than the first time. */
export class KeyReused extends SvcError {
  constructor() {
    super("idempotency_key_reused", "This Idempotency-Key was used for another request: take a new one");
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

/** Something that we depend on (database, issuer) does not answer or answers nonsense. */
export class Unavailable extends SvcError {
  constructor(detail: string, options?: ErrorOptions) {
    super("unavailable", detail, options);
  }
}

/** Something that we depend on has refused for good: whoever asks it again is told the same. */
export class Refused extends Unavailable {
  readonly permanent = true;
}

/** The configuration cannot work. `faults` lists every one of them, each naming its variable and the fix. */
export class ConfigurationError extends SvcError {
  constructor(
    readonly faults: readonly string[],
    options?: ErrorOptions,
  ) {
    super("configuration", faults.join("\n"), options);
  }
}
