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
