import { refreshSignIn } from "../../core/auth/session/refresh.ts";
import type { Actor } from "../../core/context.ts";
import type { Deps } from "../deps.ts";

/** The actor as the issuer describes them now, if it signed them in. @throws Unauthenticated, Unavailable as `refreshSignIn` */
export const refreshed = async (deps: Deps, actor: Actor): Promise<Actor> =>
  deps.sso.kind === "redirect" ? refreshSignIn(deps, actor, deps.sso.refresh) : actor;
