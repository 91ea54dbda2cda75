import { createHash } from "node:crypto";
import { defaultPassword, trialUsers } from "./users.ts";

/** The only style sheet, inlined in the page; its hash is in the Content-Security-Policy. */
const style = `
:root { color-scheme: light dark; --text: #1c2430; --soft: #4a5568; --page: #eef1f5; --card: #fff; --line: #76818f;
  --accent: #1d4ed8; --on-accent: #fff; --warn: #fff4d6; --warn-line: #b7791f; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --text: #e8ecf2; --soft: #b3bdca; --page: #11151b; --card: #1b212a;
  --line: #7d8896; --accent: #8ab4ff; --on-accent: #0b1220; --warn: #33290f; --warn-line: #d9a441; --bad: #ffb4ab; } }
* { box-sizing: border-box; }
body { margin: 0; padding: 1.5rem 1rem; background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 26rem; margin: 4vh auto; padding: 1.75rem; background: var(--card); border-radius: 0.75rem;
  box-shadow: 0 1px 3px rgb(0 0 0 / 0.2); }
h1 { margin: 0 0 1rem; font-size: 1.5rem; line-height: 1.25; }
p { margin: 0 0 1rem; }
.trial { padding: 0.75rem 1rem; background: var(--warn); border-left: 4px solid var(--warn-line); border-radius: 0.25rem; }
label { display: block; margin: 1rem 0 0.25rem; font-weight: 600; }
input { width: 100%; padding: 0.625rem 0.75rem; font: inherit; color: inherit; background: transparent;
  border: 1px solid var(--line); border-radius: 0.375rem; }
input[aria-invalid="true"] { border: 2px solid var(--bad); }
.error { margin: 0.375rem 0 0; color: var(--bad); font-weight: 600; }
button { width: 100%; margin-top: 1.25rem; padding: 0.75rem; font: inherit; font-weight: 600; cursor: pointer;
  color: var(--on-accent); background: var(--accent); border: 1px solid var(--accent); border-radius: 0.375rem; }
button.plain { margin-top: 0.75rem; color: var(--accent); background: transparent; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
dl { margin: 0; } dt { font-weight: 600; } dd { margin: 0 0 0.5rem; overflow-wrap: anywhere; }
h2 { margin: 1.75rem 0 0.5rem; font-size: 1rem; } ul { margin: 0 0 0.75rem; padding-left: 1.25rem; color: var(--soft); }
li { overflow-wrap: anywhere; } code { font: 0.95em ui-monospace, Menlo, Consolas, monospace; color: var(--text); }
`;

const styleHash = `'sha256-${createHash("sha256").update(style).digest("base64")}'`;

/**
 * Headers of every page. A browser also applies `form-action` to redirects after a form, so it includes the service
 * that the user returns to. `same-origin`, because with `no-referrer` a browser sends `Origin: null` with our form.
 */
export function pageHeaders(serviceOrigin: string): Record<string, string> {
  return {
    "content-type": "text/html; charset=utf-8",
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "content-security-policy": `default-src 'none'; style-src ${styleHash}; img-src data:; form-action 'self' ${serviceOrigin}; frame-ancestors 'none'; base-uri 'none'`,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
  };
}

export interface SignInForm {
  action: string;
  user: string;
  /** The users and their password are shown only if the password is the public default. */
  showPassword: boolean;
  error?: string;
}

export function signInPage({ action, user, showPassword, error }: SignInForm): string {
  const focus = (wanted: boolean) => (wanted ? " autofocus" : "");
  // The error does not reveal which of the two is wrong, so it belongs to both.
  const invalid = error ? ` aria-invalid="true" aria-describedby="error"` : "";
  const body = `<p class="trial"><strong>This is the trial sign-in provider of svc.</strong> Its users and passwords are made up. Never type a real password here.</p>
<form method="post" action="${escapeHtml(action)}">
<label for="user">User</label>
<input id="user" name="user" value="${escapeHtml(user)}" autocomplete="username" autocapitalize="none" spellcheck="false" required maxlength="200"${invalid}${focus(!user)}>
<label for="password">Password</label>
<input id="password" name="password" type="password" autocomplete="current-password" required maxlength="200"${invalid}${focus(Boolean(user))}>
${error ? `<p class="error" id="error" role="alert">${escapeHtml(error)}</p>` : ""}
<button type="submit">Sign in</button>
<button type="submit" class="plain" name="cancel" value="yes" formnovalidate>Cancel</button>
</form>
${showPassword ? userList() : ""}`;
  return page(error ? "Sign in: not accepted" : "Sign in", "Sign in", body);
}

function userList(): string {
  const items = trialUsers.map(
    ({ email, groups }) =>
      `<li><code>${escapeHtml(email)}</code>${groups.length ? ` (group ${escapeHtml(groups.join(", "))})` : ""}</li>`,
  );
  return `<h2>Trial users</h2>
<ul>
${items.join("\n")}
</ul>
<p>Password of each: <code>${defaultPassword}</code></p>`;
}

/** A page for an error from oidc-provider or ourselves. `code` is one of OAuth's error codes. */
export function errorPage(code: string, detail: string): string {
  return page(
    "Sign-in cannot continue",
    "Sign-in cannot continue",
    `<p>${escapeHtml(detail)}</p>
<p>Go back to the terminal and start again: <code>npx svc login</code></p>
<p>Code: <code>${escapeHtml(code)}</code></p>`,
  );
}

function page(title: string, heading: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)} · svc trial provider</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<main>
<h1>${escapeHtml(heading)}</h1>
${body}
</main>
</body>
</html>
`;
}

const escapeHtml = (text: string) => Bun.escapeHTML(text);
