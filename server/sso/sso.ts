import type { Session } from "../../core/auth/session/session.ts";
import type { Identity } from "../../core/context.ts";

/** How a browser's user is found out. */
export type SingleSignOn = RedirectSignOn | HeaderSignOn;

/** By way of an issuer: the browser goes there and comes back. */
export interface RedirectSignOn {
  kind: "redirect";
  /**
   * Starts an attempt that belongs to this session.
   * @returns where the browser has to go. @throws Unavailable when the issuer cannot be reached
   */
  begin(attempt: { session: Session; returnTo: string; userHint: string; again: boolean }): Promise<URL>;
  /**
   * Judges what the browser brought back; each attempt counts once.
   * @throws Unauthenticated with a sentence of ours, whatever the issuer said; Unavailable when it does not answer
   */
  finish(answer: { session: Session; url: URL }): Promise<{ identity: Identity; returnTo: string }>;
}

/** By a signed header that an identity-aware proxy adds to each request. */
export interface HeaderSignOn {
  kind: "header";
  /** @throws Unauthenticated when the header is missing or not good; Unavailable when the keys cannot be had */
  identify(request: Request): Promise<Identity>;
}
