import { type Challenge, type ChallengeState, stateOf } from "../../core/auth/challenge/state.ts";
import { csrfToken } from "../../core/auth/session/session.ts";
import type { AnswerOptions } from "../document.tsx";
import { cardPage, messagePage } from "./message.tsx";

// The pages on which a user signs in a terminal (docs/protocol.md). None has a script.

/** One page for everything that cannot be decided here: the reason would tell a stranger too much. */
export function unknownPage(): Response {
  return cardPage(
    "This sign-in request is not open",
    <>
      <p>
        It may have expired, been used already, been opened in another browser, or come from another computer.
      </p>
      <p>
        Start again in your terminal: <code>svc login</code>
      </p>
    </>,
    { status: 404 },
  );
}

/** An error at `path` instead of a page. The reader came from a terminal, or from the pages at `/app`. */
export function signInErrorPage(
  { title, detail, path, requestId }: { title: string; detail: string; path: string; requestId: string },
  options: AnswerOptions & { status: number },
): Response {
  const isOver = options.status === 400 || (options.status === 401 && path.startsWith("/sign_in/"));
  // The page of a form, if it is one.
  const [address] = path.match(/^\/approve\/[0-9a-f-]{36}/) ?? [""];
  return messagePage(
    {
      title,
      detail,
      link: isOver ? undefined : [address, "Try again"],
      children: (
        <>
          <p>
            To sign in a terminal, start again there: <code>svc login</code>
          </p>
          <p class="quiet">
            Request <code>{requestId}</code>
          </p>
        </>
      ),
    },
    options,
  );
}

interface PageFacts {
  challenge: Challenge;
  sessionId: string;
  signedInAs: string;
  now: Date;
}

/** Shows the request and two equal buttons. Only the form's POST decides. */
export function approvePage({ challenge, sessionId, now }: PageFacts): Response {
  const { id, userName, codeChallenge, userCode, requestAddress, client, createdAt } = challenge;
  const seconds = Math.max(0, Math.round((now.getTime() - createdAt.getTime()) / 1000));
  return cardPage(
    "Sign in a terminal?",
    <>
      <p>
        A terminal asks to sign in as <strong>{userName}</strong>.
      </p>
      {codeChallenge ? (
        <p class="code">
          Approve only if your terminal shows this code:
          <strong>{userCode}</strong>
        </p>
      ) : (
        <p class="alert">
          This client shows no code to compare. Approve only if you typed the command yourself, on this
          computer, just now.
        </p>
      )}
      <dl class="facts">
        <dt>User</dt>
        <dd>{userName}</dd>
        <dt>Requested from</dt>
        <dd>{requestAddress}</dd>
        <dt>Client</dt>
        <dd>{client}</dd>
        <dt>Requested</dt>
        <dd>{seconds === 1 ? "1 second" : `${seconds} seconds`} ago</dd>
      </dl>
      <form method="post" action={`/approve/${id}`} class="choice">
        <input type="hidden" name="csrf" value={csrfToken(sessionId, id)} />
        <button type="submit" name="decision" value="approve" class="primary">
          Approve
        </button>
        <button type="submit" name="decision" value="deny" class="danger">
          Deny
        </button>
      </form>
      <p class="quiet">If you did not start this yourself a moment ago, press Deny.</p>
    </>,
  );
}

/** This browser is signed in as a user other than the one the terminal requested. */
export function otherUserPage({ challenge, sessionId, signedInAs }: PageFacts): Response {
  const { id, userName } = challenge;
  return cardPage(
    "You are signed in as somebody else",
    <>
      <p>
        The terminal requested <strong>{userName}</strong>, but this browser is signed in as{" "}
        <strong>{signedInAs}</strong>. Nothing was approved.
      </p>
      <form method="post" action={`/approve/${id}/switch`}>
        <input type="hidden" name="csrf" value={csrfToken(sessionId, `switch ${id}`)} />
        <button type="submit">Sign in as {userName}</button>
      </form>
      <p class="quiet">If you did not start this yourself, close this page: it ends by itself.</p>
    </>,
    { status: 403 },
  );
}

/** Nobody is signed in any more; the browser continues to the issuer by itself. */
export function signInAgainPage({ id, userName }: Challenge): Response {
  const next = `/approve/${id}?prompt=login`;
  return cardPage(
    "One moment",
    <p>
      <a class="button" href={next}>
        Continue to sign in as {userName}
      </a>
    </p>,
    { headers: { refresh: `0; url=${next}` } },
  );
}

const endings: Record<Exclude<ChallengeState, "pending">, { title: string; text: string }> = {
  approved: { title: "Approved", text: "Your terminal is being signed in. You can close this page." },
  collected: { title: "Approved", text: "Your terminal is signed in. You can close this page." },
  denied: { title: "Denied", text: "The terminal was not signed in. You can close this page." },
  expired: {
    title: "Too late",
    text: "This sign-in request is over. Start again in your terminal: svc login",
  },
};

/** The result of the challenge. */
export function endPage(challenge: Challenge, now: Date, status = 200): Response {
  const state = stateOf(challenge, now);
  if (state === "pending") throw new Error("an open challenge has no end page");
  const { title, text } = endings[state];
  return cardPage(title, <p>{text}</p>, { status });
}
