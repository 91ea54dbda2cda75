/**
 * Splits a libpq address with several hosts (PostgreSQL, 32.1.1.3) into one address per host:
 * `postgres://svc@a,b:5433/svc` gives `postgres://svc@a/svc` and `postgres://svc@b:5433/svc`. An address with one host
 * is returned unchanged. Removes `target_session_attrs` if there are several hosts, as svc always uses the server that
 * accepts writes.
 */
export function addressesOf(address: string): readonly [string, ...string[]] {
  const [, scheme, user = "", hosts = "", rest] =
    /^([a-z]+:\/\/)([^/?#]*@)?([^/?#@]*)(.*)$/s.exec(address) ?? [];
  if (scheme === undefined || !hosts.includes(",")) return [address];
  const query = (rest ?? "").replace(/([?&])target_session_attrs=[^&#]*&?/, "$1").replace(/[?&]$/, "");
  const [first, ...others] = hosts.split(",").map((host) => `${scheme}${user}${host}${query}`);
  return [first!, ...others];
}
