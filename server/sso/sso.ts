import type { Logout } from "../../core/auth/session/issuer_session.ts";
import type { AskIssuer } from "../../core/auth/session/refresh.ts";
import type { IssuerSignIn, Session } from "../../core/auth/session/session.ts";
import type { Identity } from "../../core/context.ts";

/** How the user of a browser is identified. */
export type SingleSignOn = RedirectSignOn | HeaderSignOn;

/** By an issuer that the browser is redirected to. */
export interface RedirectSignOn {
  kind: "redirect";
  /**
   * Starts an attempt that belongs to this session.
   * @returns where to redirect the browser; undefined when the session is gone meanwhile
   * @throws Unavailable when the issuer cannot be reached
   */
  begin(attempt: {
    session: Session;
    returnTo: string;
    userHint?: string;
    again: boolean;
  }): Promise<URL | undefined>;
  /**
   * Completes an attempt from the callback; each attempt works once.
   * @returns undefined if the session has no such attempt
   * @throws Unauthenticated with our own message, whatever the issuer said; Unavailable when it does not answer
   */
  finish(answer: {
    session: Session;
    url: URL;
  }): Promise<{ identity: Identity; issuerSignIn: IssuerSignIn; returnTo: string } | undefined>;
  /** Where the attempt of a callback was started, if it is not over. */
  startOf(url: URL): Promise<string | undefined>;
  /**
   * Verifies a logout token of the issuer.
   * @throws InvalidInput
   * @throws Unavailable when the issuer's metadata or keys cannot be read
   */
  verifyLogout(token: string): Promise<Logout>;
  /** Asks the issuer about a sign-in that it gave a refresh token for. */
  refresh: AskIssuer;
}

/** By a signed header that an identity-aware proxy adds to each request. */
export interface HeaderSignOn {
  kind: "header";
  /** @throws Unauthenticated when the header is missing or invalid; Unavailable when the keys cannot be fetched */
  identify(request: Request): Promise<Identity>;
}
