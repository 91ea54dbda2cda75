const ids = new WeakMap<Request, string>();
const prefix = crypto.randomUUID().slice(0, 13);
let count = 0;

/** The id under which the log, the answer's header and a problem's body speak of one request: process and number. */
export function requestIdOf(request: Request): string {
  let id = ids.get(request);
  if (id === undefined) {
    count += 1;
    id = `${prefix}-${count.toString(36)}`;
    ids.set(request, id);
  }
  return id;
}

/**
 * Takes the id that a proxy has given a request for ours, so that its log and ours speak of one request. What does not
 * look like an id is passed over: it would stand in our log, in an answer's header and on a page.
 */
export function adoptRequestId(request: Request, id: string): void {
  if (/^[\w.:/+=@-]{1,128}$/.test(id)) ids.set(request, id);
}
