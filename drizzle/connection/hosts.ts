/**
 * An address of several hosts, as libpq takes it (PostgreSQL, 32.1.1.3), as one address for each of them:
 * `postgres://svc@a,b:5433/svc` are `postgres://svc@a/svc` and `postgres://svc@b:5433/svc`. One host gives the address
 * itself. `target_session_attrs` is left out of several: svc always wants the server that takes writes.
 */
export function addressesOf(address: string): readonly [string, ...string[]] {
  const [, scheme, user = "", hosts = "", rest] =
    /^([a-z]+:\/\/)([^/?#]*@)?([^/?#@]*)(.*)$/s.exec(address) ?? [];
  if (scheme === undefined || !hosts.includes(",")) return [address];
  const query = (rest ?? "").replace(/([?&])target_session_attrs=[^&#]*&?/, "$1").replace(/[?&]$/, "");
  const [first, ...others] = hosts.split(",").map((host) => `${scheme}${user}${host}${query}`);
  return [first!, ...others];
}
