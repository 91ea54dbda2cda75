import { createHash } from "node:crypto";
import { style } from "./style.ts";
import { defaultPassword, trialUsers } from "./users.ts";

const styleHash = `'sha256-${createHash("sha256").update(style).digest("base64")}'`;

/**
 * Headers of every page. A browser applies `form-action` to the redirects behind a form too, so the service that the
 * person returns to stands in it. `same-origin`, since with `no-referrer` a browser says `Origin: null` on our form.
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
  /** The users and their password are shown only while the password is the public default. */
  showPassword: boolean;
  error?: string;
}

export function signInPage({ action, user, showPassword, error }: SignInForm): string {
  const focus = (wanted: boolean) => (wanted ? " autofocus" : "");
  // Which of the two is wrong is not said, so the error belongs to both.
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

/** What oidc-provider, or we, cannot go on with. `code` is one of OAuth's fixed words. */
export function errorPage(code: string, detail: string): string {
  return page(
    "Sign-in cannot go on",
    "Sign-in cannot go on",
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
