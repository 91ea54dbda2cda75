const ids = new WeakMap<Request, string>();

/** The id under which the log, the answer's header and a problem's body speak of one request. */
export function requestIdOf(request: Request): string {
  let id = ids.get(request);
  if (id === undefined) {
    id = crypto.randomUUID();
    ids.set(request, id);
  }
  return id;
}
