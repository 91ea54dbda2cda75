import type Provider from "oidc-provider";
import { Attempts } from "./attempts.ts";
import { errorPage, pageHeaders, signInPage } from "./pages.ts";
import { defaultPassword, findUser, samePassword } from "./users.ts";

export interface SignInOptions {
  issuer: string;
  publicUrl: string;
  password: string;
  log: (line: string) => void;
}

type Koa = Parameters<Parameters<Provider["use"]>[0]>[0];

const path = /^\/sign-in\/([\w-]+)$/;
const largestForm = 4096;

/** The sign-in page: GET shows it, POST takes user and password. oidc-provider ties it to the browser with a cookie. */
export function addSignIn(provider: Provider, { issuer, publicUrl, password, log }: SignInOptions): void {
  const attempts = new Attempts((name) => findUser(name) !== undefined);
  const headers = pageHeaders(new URL(publicUrl).origin);
  const origin = new URL(issuer).origin;

  const show = (ctx: Koa, status: number, user: string, error?: string) => {
    ctx.status = status;
    ctx.body = signInPage({ action: ctx.path, user, error, showPassword: password === defaultPassword });
  };

  provider.use(async (ctx, goOn) => {
    if (!path.test(ctx.path)) return goOn();
    ctx.set(headers);
    const details = await provider.interactionDetails(ctx.req, ctx.res).catch(() => undefined);
    if (!details || !ctx.path.endsWith(`/${details.uid}`)) {
      ctx.status = 400;
      ctx.body = errorPage(
        "invalid_request",
        "This sign-in was not started in this browser, or is already over.",
      );
      return;
    }
    if (ctx.method === "GET" || ctx.method === "HEAD") {
      return show(ctx, 200, findUser(String(details.params.login_hint ?? ""))?.email ?? "");
    }
    if (ctx.method !== "POST" || (ctx.get("origin") && ctx.get("origin") !== origin)) {
      ctx.status = ctx.method === "POST" ? 403 : 405;
      ctx.body = errorPage("invalid_request", "This form was not sent from this page.");
      return;
    }
    const form = await readForm(ctx);
    if (!form) return show(ctx, 413, "", "The form is too long");
    if (form.get("cancel")) {
      const result = { error: "access_denied", error_description: "cancelled by the user" };
      return provider.interactionFinished(ctx.req, ctx.res, result);
    }
    const typed = form.get("user") ?? "";
    const user = findUser(typed);
    const name = user?.email ?? typed.trim().toLowerCase();
    const wait = attempts.wait(name);
    if (wait > 0) {
      ctx.set("retry-after", String(wait));
      return show(ctx, 429, typed, `Too many wrong passwords for this user: try again in ${wait} seconds`);
    }
    // Compared even for an unknown user, so that the response time reveals nothing.
    if (!samePassword(form.get("password") ?? "", password) || !user) {
      attempts.wrong(name);
      log("a sign-in was refused");
      return show(ctx, 401, typed, "User or password is wrong");
    }
    attempts.right(name);
    // The order matters: a result is accepted only while the session is as it was when the page was shown.
    const next = await provider.interactionResult(ctx.req, ctx.res, { login: { accountId: user.id } });
    await forgetOther(provider, details.session?.uid, user.id);
    log(`${user.email} signed in`);
    ctx.status = 303;
    ctx.redirect(next);
  });
}

/** By default, oidc-provider would show a page with a script between signing one user out and the next one in. */
async function forgetOther(provider: Provider, uid: string | undefined, id: string): Promise<void> {
  const session = uid ? await provider.Session.findByUid(uid) : undefined;
  if (!session?.accountId || session.accountId === id) return;
  session.accountId = undefined;
  session.authorizations = {};
  await session.persist();
}

async function readForm(ctx: Koa): Promise<URLSearchParams | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of ctx.req) {
    size += chunk.length;
    if (size > largestForm) return undefined;
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString());
}
