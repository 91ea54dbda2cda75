import { type Challenge, type ChallengeState, stateOf } from "../../core/auth/challenge/state.ts";
import { csrfToken } from "../../core/auth/session/session.ts";
import { type Html, html } from "../page/html.ts";
import { page } from "../page/page.ts";

/** One page for everything that cannot be decided here: the reason would tell a stranger too much. */
export function unknownPage(): Response {
  return page({
    title: "This sign-in request is not open",
    status: 404,
    tone: "bad",
    body: html`<p>
        It may have expired, been used already, been opened in another browser, or come from another computer.
      </p>
      <p>Start again in your terminal: <code>svc login</code></p>`,
  });
}

/** A message instead of the requested page. */
export function messagePage(title: string, detail: string, status: number, requestId?: string): Response {
  return page({
    title,
    status,
    tone: "bad",
    body: html`<p>${detail}.</p>
      <p>To start again, type <code>svc login</code> in your terminal.</p>
      ${requestId && html`<p class="soft">Request <code>${requestId}</code></p>`}`,
  });
}

interface PageFacts {
  challenge: Challenge;
  sessionId: string;
  signedInAs: string;
  now: Date;
}

/** Shows the request and two equal buttons. Only the form's POST decides. */
export function approvePage({ challenge, sessionId, now }: PageFacts): Response {
  return page({
    title: "Sign in a terminal?",
    body: html`<p>A terminal asks to sign in as <strong>${challenge.userName}</strong>.</p>
      ${challenge.codeChallenge ? codeBox(challenge.userCode) : legacyWarning} ${facts(challenge, now)}
      <form method="post" action="/approve/${challenge.id}">
        <input type="hidden" name="csrf" value="${csrfToken(sessionId, challenge.id)}" />
        <div class="choice">
          <button name="decision" value="approve">Approve</button>
          <button name="decision" value="deny" class="deny">Deny</button>
        </div>
      </form>
      <p class="soft">If you did not start this yourself a moment ago, press Deny.</p>`,
  });
}

function codeBox(code: string): Html {
  return html`<div class="code">
    <span>Approve only if your terminal shows this code:</span><strong>${code}</strong>
  </div>`;
}

const legacyWarning = html`<p class="warning">
  This client shows no code to compare. Approve only if you typed the command yourself, on this computer, just
  now.
</p>`;

function facts(challenge: Challenge, now: Date): Html {
  const seconds = Math.max(0, Math.round((now.getTime() - challenge.createdAt.getTime()) / 1000));
  return html`<dl>
    <dt>User</dt>
    <dd>${challenge.userName}</dd>
    <dt>Requested from</dt>
    <dd>${challenge.requestAddress}</dd>
    <dt>Client</dt>
    <dd>${challenge.client}</dd>
    <dt>Requested</dt>
    <dd>${seconds === 1 ? "1 second" : `${seconds} seconds`} ago</dd>
  </dl>`;
}

/** This browser is signed in as a user other than the one the terminal requested. */
export function otherUserPage({ challenge, sessionId, signedInAs }: PageFacts): Response {
  return page({
    title: "You are signed in as somebody else",
    status: 403,
    tone: "bad",
    body: html`<p>
        The terminal requested <strong>${challenge.userName}</strong>, but this browser is signed in as
        <strong>${signedInAs}</strong>. Nothing was approved.
      </p>
      <form method="post" action="/approve/${challenge.id}/switch">
        <input type="hidden" name="csrf" value="${csrfToken(sessionId, `switch ${challenge.id}`)}" />
        <p><button class="link">Sign in as ${challenge.userName}</button></p>
      </form>
      <p class="soft">If you did not start this yourself, close this page: it ends by itself.</p>`,
  });
}

/** Nobody is signed in any more; the browser continues to the issuer by itself. */
export function signInAgainPage({ id, userName }: Challenge): Response {
  const next = `/approve/${id}?prompt=login`;
  return page({
    title: "One moment",
    headers: { refresh: `0; url=${next}` },
    body: html`<p><a href="${next}">Continue to sign in as ${userName}</a></p>`,
  });
}

const endings: Record<
  Exclude<ChallengeState, "pending">,
  { title: string; text: string; tone: "good" | "bad" }
> = {
  approved: {
    title: "Approved",
    text: "Your terminal is being signed in. You can close this page.",
    tone: "good",
  },
  collected: {
    title: "Approved",
    text: "Your terminal is signed in. You can close this page.",
    tone: "good",
  },
  denied: { title: "Denied", text: "The terminal was not signed in. You can close this page.", tone: "bad" },
  expired: {
    title: "Too late",
    text: "This sign-in request is over. Start again in your terminal: svc login",
    tone: "bad",
  },
};

/** The result of the challenge. */
export function endPage(challenge: Challenge, now: Date, status = 200): Response {
  const state = stateOf(challenge, now);
  if (state === "pending") throw new Error("an open challenge has no end page");
  const { title, text, tone } = endings[state];
  return page({ title, tone, status, body: html`<p>${text}</p>` });
}
