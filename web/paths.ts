/** Where the pages are. */
export const app = "/app";
export const signInPath = `${app}/sign_in`;
export const signOutPath = `${app}/sign_out`;
export const profilePath = `${app}/profile`;
export const adminPath = `${app}/admin`;
export const helpPath = `${app}/help`;
export const incidentPath = (id: number) => `${app}/incidents/${id}`;
export const documentPath = (id: number) => `${app}/documents/${id}`;

/** The address that starts a sign-in, and leads back to `path` after it. */
export function signInAddress(path: string): string {
  return `${signInPath}?return=${encodeURIComponent(path)}`;
}

/** Where a sign-in may lead: below `/app` only, as `path` comes from a link. */
export function returnPath(path: string | null): string {
  const origin = "http://svc.invalid";
  const url = path === null ? null : URL.parse(path, origin);
  if (url?.origin !== origin || (url.pathname !== app && !url.pathname.startsWith(`${app}/`))) return app;
  return url.pathname.startsWith(signInPath) ? app : `${url.pathname}${url.search}`;
}
