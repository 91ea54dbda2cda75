import { Elysia } from "elysia";
import { messagePage, unknownPage } from "../challenge/pages.ts";
import type { Deps } from "../deps.ts";
import { faultOf } from "../error.ts";
import { requestIdOf } from "../request_id.ts";

const titles: Record<number, string> = {
  400: "This form cannot be read",
  401: "You are not signed in",
  403: "Not allowed",
  429: "Too many requests",
  503: "Not possible just now",
};

/** Failures of pages are pages: status and sentence of the fault, and the id under which the log has more. */
export const pageErrors = (deps: Deps) =>
  new Elysia({ name: "page errors" }).onError({ as: "scoped" }, ({ error, request }) => {
    const requestId = requestIdOf(request);
    const { status, detail } = faultOf(error, deps.log, requestId);
    if (status === 404) return unknownPage();
    return messagePage(titles[status] ?? "Something went wrong", detail, status, requestId);
  });
